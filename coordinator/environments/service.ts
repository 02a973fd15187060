// The requests on environments (spec §4.9): rules and writes.

import type {
  CreateEnvironmentRequest,
  Environment,
  EnvironmentFileInput,
  EnvironmentRepo,
  EnvironmentToggles,
  PatchEnvironmentRequest,
} from '../../shared/api/environments.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isId, newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { countBoxesByEnvironment } from '../boxes/lookups.ts'
import type { EnvVar } from '../boxes/present.ts'
import type { Db } from '../db/open.ts'
import type { EnvironmentRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { createNoSuchEnvironmentError } from './box-environments.ts'
import { type Current, createChange, present, record, setDefault, writeVersion } from './change.ts'
import {
  assertValid,
  describeDifference,
  EMPTY_CONFIG,
  type EnvironmentConfig,
  parseConfig,
  setRepo,
  setVar,
  sortFiles,
  toVars,
} from './config.ts'
import type { EnvironmentFiles } from './files.ts'
import { presentEnvironment } from './present.ts'
import { pruneVersions } from './prune.ts'
import {
  countEnvironments,
  insertEnvironment,
  listEnvironments,
  lockEnvironment,
  lockEnvironmentByName,
  updateEnvironment,
} from './store/environments.ts'

/**
 * Functions with an id throw not_found for an environment that is unknown, deleted, or one of another workspace. Functions that
 * change the configuration create a version, unless it stays the same, and throw like assertValid(). Those that remove nothing
 * throw workspace_closing.
 */
export type EnvironmentService = {
  /** In the order of their names. */
  listPages(actor: Actor): AsyncIterable<Environment[]>
  /** @throws ApiError name_taken, environment_limit */
  create(actor: Actor, input: CreateEnvironmentRequest): Promise<Environment>
  /** @throws ApiError name_taken */
  patch(actor: Actor, id: string, input: PatchEnvironmentRequest): Promise<Environment>
  /** Idempotent. Boxes and snapshots keep their versions. */
  remove(actor: Actor, id: string): Promise<void>
  setDefault(actor: Actor, id: string): Promise<Environment>
  setToggles(actor: Actor, id: string, toggles: PartialToggles): Promise<Environment>
  setVar(actor: Actor, id: string, variable: EnvVar): Promise<Environment>
  removeVar(actor: Actor, id: string, name: string): Promise<Environment>
  setFile(actor: Actor, id: string, file: EnvironmentFileInput): Promise<Environment>
  removeFile(actor: Actor, id: string, path: string): Promise<Environment>
  setRepo(actor: Actor, id: string, repo: EnvironmentRepo): Promise<Environment>
  removeRepo(actor: Actor, id: string, repo: string): Promise<Environment>
}

/** An environment has up to 64 KiB of variables. */
const PAGE_SIZE = 10

type PartialToggles = { [Name in keyof EnvironmentToggles]?: boolean | undefined }

export type EnvironmentServiceOptions = {
  db: Db
  clock: Clock
  files: EnvironmentFiles
  confirmActor: ConfirmActor
}

export function createEnvironmentService(options: EnvironmentServiceOptions): EnvironmentService {
  const { db, clock, files, confirmActor } = options
  const change = createChange({ db, clock, confirmActor })

  async function* listPages({ workspaceId }: Actor): AsyncGenerator<Environment[]> {
    let after = ''
    for (;;) {
      const rows = await listEnvironments(db, workspaceId, { after, limit: PAGE_SIZE })
      const ids = rows.map(({ id }) => id)
      const counts = await countBoxesByEnvironment(db, ids)
      yield rows.map(({ config, ...row }) =>
        presentEnvironment(row, parseConfig(config), counts.get(row.id) ?? 0),
      )
      if (rows.length < PAGE_SIZE) return
      after = rows.at(-1)?.name ?? after
    }
  }

  function create(actor: Actor, input: CreateEnvironmentRequest): Promise<Environment> {
    const { workspaceId } = actor
    return transaction(db, async (trx) => {
      const now = clock.now()
      // Locks the workspace: concurrent requests see each other's names, numbers and defaults.
      await confirmActor(trx, actor, now)
      await assertOpen(trx, workspaceId)
      await assertNameIsFree(trx, workspaceId, input.name)
      await assertBelowLimit(trx, workspaceId)
      const row: EnvironmentRow = {
        id: newId('environment'),
        workspace_id: workspaceId,
        name: input.name,
        description: input.description ?? null,
        is_default: 0,
        latest_version_no: 1,
        created_at: now,
        updated_at: now,
        deleted_at: null,
      }
      await insertEnvironment(trx, row)
      const config = await applyInput({ trx, row, config: EMPTY_CONFIG, now }, input)
      assertValid(config)
      await writeVersion(trx, actor, row, config, now)
      const names = describeDifference(EMPTY_CONFIG, config)
      record(trx, 'environment.create', actor, row, now, { versionNo: 1, ...names })
      const written = await setDefault(trx, actor, row, input.isDefault ?? false, now)
      return present(trx, written, config)
    })
  }

  const changeConfig = (
    actor: Actor,
    id: string,
    fn: (config: EnvironmentConfig) => EnvironmentConfig,
  ): Promise<Environment> => change(actor, id, async ({ config }) => ({ config: fn(config) }))

  const removeFromConfig = (
    actor: Actor,
    id: string,
    fn: (config: EnvironmentConfig) => Partial<EnvironmentConfig>,
  ): Promise<Environment> =>
    change(actor, id, async ({ config }) => ({ config: { ...config, ...fn(config) } }), { isRemoval: true })

  const patch: EnvironmentService['patch'] = (actor, id, input) =>
    change(actor, id, async (current) => {
      const { trx, row } = current
      const { name = row.name, description = row.description, isDefault } = input
      if (name !== row.name) await assertNameIsFree(trx, actor.workspaceId, name)
      const columns = {
        ...(name !== row.name && { name }),
        ...(description !== row.description && { description }),
      }
      return { columns, isDefault, config: await applyInput(current, input) }
    })

  /** vars, files and repos of the request replace all of their kind. */
  async function applyInput(
    { trx, row, config, now }: Current,
    {
      vars,
      files: inputs,
      repos,
      image,
      toggles,
    }: Pick<CreateEnvironmentRequest, 'vars' | 'files' | 'repos' | 'image' | 'toggles'>,
  ): Promise<EnvironmentConfig> {
    return {
      vars: vars ? toVars(vars) : config.vars,
      files: inputs
        ? sortFiles(await files.write(trx, row, inputs, { current: config.files, now }))
        : config.files,
      repos: repos ?? config.repos,
      image: image === undefined ? config.image : image,
      toggles: mergeToggles(config.toggles, toggles),
    }
  }

  const setFile: EnvironmentService['setFile'] = (actor, id, file) =>
    change(actor, id, async ({ trx, row, config, now }) => {
      const written = await files.write(trx, row, [file], { current: config.files, now })
      const others = config.files.filter(({ path }) => path !== file.path)
      return { config: { ...config, files: sortFiles([...others, ...written]) } }
    })

  function remove(actor: Actor, id: string): Promise<void> {
    return transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const row = isId('environment', id) ? await lockEnvironment(trx, id) : undefined
      if (row?.workspace_id !== actor.workspaceId) throw createNoSuchEnvironmentError()
      if (row.deleted_at !== null) return
      const deleted = await updateEnvironment(trx, id, { deleted_at: now, is_default: 0, updated_at: now })
      await pruneVersions(trx, deleted)
      record(trx, 'environment.delete', actor, row, now)
    })
  }

  return {
    listPages,
    create,
    patch,
    remove,
    setDefault: (actor, id) => change(actor, id, async () => ({ isDefault: true })),
    setToggles: (actor, id, toggles) =>
      changeConfig(actor, id, (config) => ({ ...config, toggles: mergeToggles(config.toggles, toggles) })),
    setVar: (actor, id, variable) => changeConfig(actor, id, (config) => setVar(config, variable)),
    removeVar: (actor, id, name) =>
      removeFromConfig(actor, id, ({ vars }) => ({ vars: vars.filter((other) => other.name !== name) })),
    setFile,
    removeFile: (actor, id, path) =>
      removeFromConfig(actor, id, ({ files }) => ({ files: files.filter((file) => file.path !== path) })),
    setRepo: (actor, id, repo) => changeConfig(actor, id, (config) => setRepo(config, repo)),
    removeRepo: (actor, id, name) =>
      removeFromConfig(actor, id, ({ repos }) => ({ repos: repos.filter(({ repo }) => repo !== name) })),
  }
}

const mergeToggles = (toggles: EnvironmentToggles, changes: PartialToggles = {}): EnvironmentToggles => ({
  restricted: changes.restricted ?? toggles.restricted,
  git: changes.git ?? toggles.git,
  cloud: changes.cloud ?? toggles.cloud,
  codingAgents: changes.codingAgents ?? toggles.codingAgents,
})

async function assertNameIsFree(trx: Trx, workspaceId: string, name: string): Promise<void> {
  if (await lockEnvironmentByName(trx, workspaceId, name))
    throw new ApiError('name_taken', `An environment named ${name} already exists. Choose another name.`)
}

async function assertBelowLimit(trx: Trx, workspaceId: string): Promise<void> {
  const limit = LIMITS.environments
  if ((await countEnvironments(trx, workspaceId)) < limit) return
  throw new ApiError(
    'environment_limit',
    `The workspace has reached its limit of ${limit} environments. Delete one first.`,
    { fields: { limit } },
  )
}
