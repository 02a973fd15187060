// The environments of boxes: which version a new box uses, and what a version has.
import { type Clock, toTimestampOrNull } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isId } from '../../shared/ids.ts'
import type { EnvironmentChoice, PinnedEnvironment } from '../boxes/box-hooks.ts'
import type { Db } from '../db/open.ts'
import type { EnvironmentRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { parseConfig } from './config.ts'
import { setBoxRepos } from './delivery/box-repos.ts'
import type { EnvironmentFiles } from './files.ts'
import {
  findEnvironment,
  lockDefaultEnvironment,
  lockEnvironment,
  lockEnvironmentByName,
} from './store/environments.ts'
import { findVersion } from './store/versions.ts'
import type { Environments, EnvironmentVersion } from './types.ts'

export const createNoSuchEnvironmentError = (): ApiError => new ApiError('not_found', 'No such environment.')

export function createEnvironments(options: {
  db: Db
  clock: Clock
  files: Pick<EnvironmentFiles, 'read'>
}): Environments {
  const { db, clock, files } = options

  async function loadVersion(
    environmentId: string,
    versionNo: number,
    trx: Db | Trx = db,
  ): Promise<EnvironmentVersion | undefined> {
    const row = await findVersion(trx, environmentId, versionNo)
    if (!row) return undefined
    return { environmentId, versionNo, workspaceId: row.workspace_id, config: parseConfig(row.config) }
  }

  async function pin(trx: Trx, environmentId: string, versionNo: number): Promise<PinnedEnvironment> {
    const version = await loadVersion(environmentId, versionNo, trx)
    if (!version) throw new Error(`Environment ${environmentId} has no version ${versionNo}.`)
    const { vars, image, toggles } = version.config
    return { id: environmentId, versionNo, vars, image, toggles }
  }

  return {
    loadVersion,

    async choose(trx, actor, { environment, source }) {
      if (environment === null) return null
      if (environment !== undefined) {
        const { id, latest_version_no: versionNo } = await requireLive(trx, actor, environment)
        return pin(trx, id, versionNo)
      }
      if (source !== null) return pinSource(trx, source)
      const lock = () => lockDefaultEnvironment(trx, actor.workspaceId)
      // Postgres returns no row when the environment stopped being the default while this transaction waited for it.
      const row = (await lock()) ?? (await lock())
      return row ? pin(trx, row.id, row.latest_version_no) : null
    },

    async listFilePaths(trx, source) {
      const version = await loadVersionOf(trx, source)
      return version?.config.files.map(({ path }) => path) ?? []
    },

    async onCreate(trx, box) {
      const version = await loadVersionOf(trx, box)
      if (version) await setBoxRepos(trx, box, version.config.repos, clock.now())
    },

    async describe(db, { environment_id: id, environment_version_no: versionNo }) {
      if (id === null || versionNo === null) return null
      const row = await findEnvironment(db, id)
      if (!row) return null
      const { name, latest_version_no: latestVersionNo, deleted_at: deletedAt } = row
      return { id, name, versionNo, latestVersionNo, deletedAt: toTimestampOrNull(deletedAt) }
    },

    async openFiles({ config }) {
      const contents = await files.read(
        db,
        config.files.map(({ fileId }) => fileId),
      )
      return config.files.map(({ path, mode, fileId }) => {
        const content = contents.get(fileId)
        if (content === undefined) throw new Error(`The content of ${path} (${fileId}) does not exist.`)
        return { path, mode, content }
      })
    },
  }

  async function loadVersionOf(
    trx: Trx,
    { environment_id: id, environment_version_no: versionNo }: NonNullable<EnvironmentChoice['source']>,
  ): Promise<EnvironmentVersion | undefined> {
    return id === null || versionNo === null ? undefined : loadVersion(id, versionNo, trx)
  }

  /** The snapshot, which the caller has locked or just written, keeps the version. */
  async function pinSource(
    trx: Trx,
    { environment_id: id, environment_version_no: versionNo }: NonNullable<EnvironmentChoice['source']>,
  ): Promise<PinnedEnvironment | null> {
    if (id === null || versionNo === null) return null
    await lockEnvironment(trx, id)
    return pin(trx, id, versionNo)
  }
}

/** Finds a live environment by its id or name, and locks it. Throws not_found. */
async function requireLive(trx: Trx, { workspaceId }: Actor, nameOrId: string): Promise<EnvironmentRow> {
  if (!isId('environment', nameOrId)) {
    const row = await lockEnvironmentByName(trx, workspaceId, nameOrId)
    if (row) return row
    throw createNoSuchEnvironmentError()
  }
  return requireEnvironment(await lockEnvironment(trx, nameOrId), workspaceId)
}

/** Throws not_found for an environment that is unknown, deleted, or one of another workspace. */
export function requireEnvironment(row: EnvironmentRow | undefined, workspaceId: string): EnvironmentRow {
  if (row?.workspace_id === workspaceId && row.deleted_at === null) return row
  throw createNoSuchEnvironmentError()
}
