// Clones and updates the repositories of running boxes in the background. What is unfinished continues when the agent connects
// again, also to another coordinator.

import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { type AgentRepoResponse, agentRepoResponseSchema } from '../../../shared/api/environment-delivery.ts'
import type { Clock } from '../../../shared/clock.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import { coversHost } from '../../../shared/secret-hosts.ts'
import type { Tunnel, Tunnels } from '../../agents/tunnel/types.ts'
import type { BoxSecrets } from '../../boxes/box-hooks.ts'
import { findBox } from '../../boxes/lookups.ts'
import { recordVariableChange } from '../../boxes/variable-changes.ts'
import { getBoxVariables } from '../../boxes/variables.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRepoRow, BoxRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { getRepoSource } from './box-repos.ts'
import { recordBoxEvent } from './record-event.ts'
import { listUnfinishedRepos, updateBoxRepo } from './store.ts'

export type RepoSyncOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  tunnels: Pick<Tunnels, 'local'>
  boxSecrets: Pick<BoxSecrets, 'mountForRepo'>
  boxVariables: {
    /** Resolves when the agent has got the changes, or could not be reached. */
    whenSent(boxId: string): Promise<void>
  }
  /** Milliseconds between two attempts when the agent is connected and does not respond. Default: 5 s. */
  retryMs?: number
}

/** The agent limits git too. */
const MAX_CONCURRENT_PER_BOX = 2
/** The agent terminates each git command after 15 minutes. */
const RESPONSE_TIMEOUT_MS = 45 * 60_000
const RETRY_MS = 5_000
const MAX_ATTEMPTS = 3
const MAX_ERROR = 500
const OK = 200

/** What git sends for a private repository. */
type Access = { password: string | null } | { problem: string }

export class RepoSync {
  readonly #options: Required<RepoSyncOptions>
  /** The boxes whose repositories are being cloned or updated. true: read the rows again afterwards. */
  readonly #running = new Map<string, boolean>()
  readonly #tasks = new Set<Promise<void>>()
  readonly #closing = new AbortController()

  constructor(options: RepoSyncOptions) {
    this.#options = { retryMs: RETRY_MS, ...options }
  }

  /** Continues what is unfinished, if the box is running and its agent is connected to this coordinator. */
  schedule(boxId: string): void {
    if (this.#closing.signal.aborted) return
    if (this.#running.has(boxId)) return void this.#running.set(boxId, true)
    const task = this.#sync(boxId).catch((err: unknown) => {
      if (!this.#closing.signal.aborted)
        this.#options.log.error({ err, boxId }, 'failed to clone the repositories of a box')
    })
    this.#tasks.add(task)
    void task.then(() => this.#tasks.delete(task))
  }

  /** Clones on boxes continue. The next coordinator gets their results. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#tasks)
  }

  async #sync(boxId: string): Promise<void> {
    try {
      do {
        this.#running.set(boxId, false)
        await this.#syncOnce(boxId)
      } while (this.#running.get(boxId) === true)
    } finally {
      this.#running.delete(boxId)
    }
  }

  async #syncOnce(boxId: string): Promise<void> {
    const { db, tunnels } = this.#options
    const rows = await listUnfinishedRepos(db, boxId)
    if (rows.length === 0) return
    const box = await findBox(db, boxId)
    if (box?.observed_state !== 'running' || box.desired_state === 'terminated') return
    const tunnel = tunnels.local(boxId)
    if (tunnel === undefined) return
    const limit = pLimit(MAX_CONCURRENT_PER_BOX)
    await Promise.all(rows.map((row) => limit(() => this.#ensure(row, tunnel))))
  }

  async #ensure(row: BoxRepoRow, tunnel: Tunnel): Promise<void> {
    const { boxVariables, db, clock } = this.#options
    const { box_id: boxId } = row
    const claim = await transaction(db, async (trx) => {
      const box = await lockBox(trx, boxId)
      const started = { state: 'cloning', updated_at: clock.now() } as const
      if (!box || !(await updateBoxRepo(trx, row, ['pending', 'cloning'], started))) return undefined
      const access = await this.#findAccess(trx, box, row)
      const isMounted = (await findBox(trx, boxId))?.mount_vars !== box.mount_vars
      if (isMounted) recordVariableChange(trx, boxId)
      return { access }
    })
    if (claim === undefined) return
    const { access } = claim
    if ('problem' in access) return this.#record(row, { error: access.problem })
    if (access.password !== null) await boxVariables.whenSent(boxId)
    const box = await findBox(db, boxId)
    const result = box && (await this.#request(row, box, access.password, tunnel))
    if (result) await this.#record(row, result)
  }

  /** Mounts the secret of a private repository. */
  async #findAccess(trx: Trx, box: BoxRow, { repo, secret }: BoxRepoRow): Promise<Access> {
    if (secret === null) return { password: null }
    const mount = await this.#options.boxSecrets.mountForRepo(trx, box, secret)
    if ('problem' in mount) return mount
    const { hostname, port } = new URL(getRepoSource({ repo }).url)
    if (port !== '') return { problem: `the secret ${secret} is sent to port 443 only` }
    if (!mount.hosts.some((pattern) => coversHost(pattern, hostname)))
      return { problem: `the secret ${secret} is not for the host ${hostname}` }
    return { password: mount.placeholder }
  }

  /** undefined: the agent has disconnected, or the coordinator closes. */
  async #request(
    row: BoxRepoRow,
    box: BoxRow,
    password: string | null,
    tunnel: Tunnel,
  ): Promise<AgentRepoResponse | undefined> {
    const { tunnels, log, retryMs } = this.#options
    const { signal } = this.#closing
    for (let attempt = 1; ; attempt++) {
      try {
        return await requestRepo(row, box, password, tunnel, signal)
      } catch (err) {
        if (signal.aborted || tunnels.local(box.id) !== tunnel) return undefined
        log.warn({ err, boxId: box.id }, 'the agent has not answered a request for a repository')
        if (attempt === MAX_ATTEMPTS) return { error: 'git was terminated, or the agent does not respond' }
        await sleep(retryMs, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
  }

  /** No-op when an upgrade has replaced or removed the repository meanwhile. */
  async #record(row: BoxRepoRow, result: AgentRepoResponse): Promise<void> {
    const { db, clock } = this.#options
    await transaction(db, async (trx) => {
      const box = await lockBox(trx, row.box_id)
      if (box === undefined || box.desired_state === 'terminated') return
      const now = clock.now()
      const isError = 'error' in result
      const changes = isError
        ? ({ state: 'failed', error: toErrorText(result.error) } as const)
        : ({ state: 'ready', error: null, commit_id: result.commit } as const)
      if (!(await updateBoxRepo(trx, row, ['cloning'], { ...changes, updated_at: now }))) return
      await recordBoxEvent(trx, box, describeResult(row, result), now)
    })
  }
}

async function requestRepo(
  { repo, path, ref, commit_id: commit }: BoxRepoRow,
  box: BoxRow,
  password: string | null,
  tunnel: Tunnel,
  signal: AbortSignal,
): Promise<AgentRepoResponse> {
  const { url } = getRepoSource({ repo })
  const request = { url, path, ref, password, update: commit !== null, env: getBoxVariables(box) }
  const { status, body } = await tunnel.call({
    method: 'PUT',
    path: '/environment-repos',
    body: JSON.stringify(request),
    signal,
    timeoutMs: RESPONSE_TIMEOUT_MS,
  })
  if (status !== OK) return { error: `the agent has responded with ${status}` }
  const parsed = agentRepoResponseSchema.safeParse(parseJson(body.toString()))
  return parsed.success ? parsed.data : { error: 'the response of the agent is not valid' }
}

/** The text is from the agent, which is not trusted. */
const toErrorText = (text: string): string => text.replace(/[\p{C}\s]+/gu, ' ').slice(0, MAX_ERROR)

const SHORT_COMMIT = 10

function describeResult({ repo, path, commit_id: previous }: BoxRepoRow, result: AgentRepoResponse): string {
  const { url } = getRepoSource({ repo })
  if ('error' in result) {
    const verb = previous === null ? 'clone' : 'update'
    return `could not ${verb} ${url} in ${path}: ${result.error}`
  }
  const version = result.commit === null ? 'without commits' : `at ${result.commit.slice(0, SHORT_COMMIT)}`
  if (result.isKept) return `kept the clone of ${url} in ${path} ${version}`
  return `${previous === null ? 'cloned' : 'updated'} ${url} in ${path} ${version}`
}
