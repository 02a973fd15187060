// Sends the credentials for AWS to the boxes whose agents are connected: when an agent connects, at half of the life of its
// token, and after changes. Each request has the complete state, so nothing is stored.

import type { Logger } from 'pino'
import {
  type CloudCredentials,
  cloudCredentialsResponseSchema,
} from '../../../shared/api/cloud-credentials.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import { createFairQueue } from '../../base/fair-queue.ts'
import { createDueTimer } from '../../jobs/due-timer.ts'
import type { IdentityToken } from '../issuer/issuer.ts'
import type { CredentialChange } from './credential-changes.ts'
import { type CredentialLoader, toRequest } from './load-credentials.ts'

const TIMEOUT_MS = 30_000
const RETRY_MS = 60_000
/** A change of the roles of a workspace concerns all its boxes. */
const MAX_CONCURRENT = 16
const OK = 200

type ConnectedBox = {
  workspaceId: string | null
  isRestricted: boolean
  /** The profiles that the agent has, as JSON; null: none has been sent since it connected. */
  sent: string | null
  /** When the token is replaced, or a failed request is repeated, in milliseconds since the epoch. */
  dueAt: number | null
}

export type CredentialSenderOptions = {
  loader: CredentialLoader
  tunnels: Pick<Tunnels, 'local' | 'on' | 'off'>
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  /** Whether this deployment has an issuer. */
  isEnabled: boolean
}

export class CredentialSender {
  readonly #options: CredentialSenderOptions
  readonly #connected = new Map<string, ConnectedBox>()
  /** The last request of each box: one at a time. */
  readonly #last = new Map<string, Promise<void>>()
  readonly #queue = createFairQueue(MAX_CONCURRENT)
  readonly #timer: ReturnType<typeof createDueTimer>
  readonly #closing = new AbortController()

  constructor(options: CredentialSenderOptions) {
    const { clock, log } = options
    this.#options = options
    this.#timer = createDueTimer(
      clock,
      async () => this.sendDue(),
      (err) => log.error({ err }, 'failed to refresh the cloud credentials of boxes'),
    )
  }

  /** Sends nothing before. A deployment that has never had an issuer needs no sender. */
  start(): void {
    const { tunnels } = this.#options
    tunnels.on('connected', this.#onConnected)
    tunnels.on('disconnected', this.#onDisconnected)
  }

  /** Sends the state of the box, or of the boxes of the workspace. */
  onChange(change: CredentialChange): void {
    if ('workspaceId' in change) this.#enqueueWorkspace(change.workspaceId)
    else if (this.#connected.has(change.boxId)) this.#enqueue(change.boxId)
  }

  /** Sends the state of the box, unless the agent has these profiles already: the change may concern something else. */
  onEnvironmentChange(boxId: string): void {
    if (this.#connected.has(boxId)) this.#enqueue(boxId, { onlyIfChanged: true })
  }

  /**
   * The workspace was closed or reopened, or a member was removed or has another role: a box without an environment gets
   * credentials while its owner is an owner of the workspace.
   */
  onAccessChange(workspaceId: string): void {
    this.#enqueueWorkspace(workspaceId, { onlyIfChanged: true })
  }

  /** Any of these changes may have been missed. */
  onMissedChanges(): void {
    for (const boxId of this.#connected.keys()) this.#enqueue(boxId, { onlyIfChanged: true })
  }

  /**
   * Resolves when the connected agent has the state of the box. Another box than a restricted one starts also when its agent
   * could not write the state, which is sent again.
   * @throws ApiError when the agent of a restricted box may still have the token of a box whose files were copied
   */
  async prepare(boxId: string): Promise<void> {
    await this.#last.get(boxId)
    const box = this.#connected.get(boxId)
    if (box === undefined || box.sent !== null || !box.isRestricted) return
    await this.#send(boxId)
  }

  /** Replaces the tokens that have reached half of their life. */
  sendDue(): void {
    const now = this.#options.clock.now()
    for (const [boxId, box] of this.#connected) {
      const { dueAt } = box
      if (dueAt === null) continue
      if (dueAt > now) this.#timer.scheduleAt(dueAt)
      else {
        box.dueAt = null
        this.#enqueue(boxId)
      }
    }
  }

  /** Resolves when no request is in flight. */
  async whenIdle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values())
  }

  async close(): Promise<void> {
    const { tunnels } = this.#options
    tunnels.off('connected', this.#onConnected)
    tunnels.off('disconnected', this.#onDisconnected)
    this.#timer.close()
    this.#closing.abort()
    this.#queue.clear(new Error('the coordinator is stopping'))
    this.#connected.clear()
    await Promise.allSettled(this.#last.values())
  }

  readonly #onConnected = ({ boxId }: { boxId: string }): void => {
    this.#connected.set(boxId, { workspaceId: null, isRestricted: false, sent: null, dueAt: null })
    this.#enqueue(boxId)
  }

  readonly #onDisconnected = (boxId: string): void => {
    this.#connected.delete(boxId)
  }

  #enqueue(boxId: string, options: { onlyIfChanged?: boolean } = {}): void {
    const previous = this.#last.get(boxId) ?? Promise.resolve()
    const request = previous
      .then(() => this.#send(boxId, options))
      .catch((err: unknown) => this.#onFailure(boxId, err))
      .finally(() => {
        if (this.#last.get(boxId) === request) this.#last.delete(boxId)
      })
    this.#last.set(boxId, request)
  }

  #enqueueWorkspace(workspaceId: string, options: { onlyIfChanged?: boolean } = {}): void {
    // The workspace of a new connection is not known yet: its request may have read the rows before.
    for (const [boxId, box] of this.#connected)
      if (box.workspaceId === null || box.workspaceId === workspaceId) this.#enqueue(boxId, options)
  }

  #onFailure(boxId: string, err: unknown): void {
    const box = this.#connected.get(boxId)
    if (this.#closing.signal.aborted || box === undefined) return
    this.#options.log.warn({ err, boxId }, 'failed to send the cloud credentials of a box; will retry')
    this.#schedule(box, this.#options.clock.now() + RETRY_MS)
  }

  #schedule(box: ConnectedBox, time: number): void {
    box.dueAt = time
    this.#timer.scheduleAt(time)
  }

  async #send(boxId: string, { onlyIfChanged = false } = {}): Promise<void> {
    const { loader, isEnabled } = this.#options
    const box = this.#connected.get(boxId)
    const loaded = box && (await loader.loadProfiles(boxId))
    if (box === undefined || loaded === undefined) return
    const { workspaceId, isRestricted, profiles, hasRoles } = loaded
    Object.assign(box, { workspaceId, isRestricted })
    const content = JSON.stringify(profiles)
    if (onlyIfChanged && box.sent === content) return
    // Files that were copied from another box may have its token.
    if (isEnabled || hasRoles) {
      const token = profiles.length === 0 ? null : await loader.issueToken(workspaceId, boxId)
      await this.#put({ boxId, workspaceId }, toRequest(profiles, token))
      if (token !== null) this.#schedule(box, getRefreshTime(token))
      else box.dueAt = null
    }
    box.sent = content
  }

  /** @throws ApiError when the agent cannot be reached, or could not remove the token */
  #put(
    { boxId, workspaceId }: { boxId: string; workspaceId: string },
    request: CloudCredentials,
  ): Promise<void> {
    const { tunnels, log } = this.#options
    return this.#queue.run(workspaceId, async () => {
      const tunnel = tunnels.local(boxId)
      if (tunnel === undefined) throw new ApiError('box_unreachable')
      const { status, body } = await tunnel.call({
        method: 'PUT',
        path: '/cloud-credentials',
        body: JSON.stringify(request),
        signal: this.#closing.signal,
        timeoutMs: TIMEOUT_MS,
      })
      // The box may still have the token that the request removes.
      if (status !== OK)
        throw new ApiError(
          'box_unreachable',
          `The agent has refused the cloud credentials of its box with status ${status}.`,
        )
      logFailures(log, boxId, body)
    })
  }
}

const getRefreshTime = ({ issuedAt, expiresAt }: IdentityToken): number => (issuedAt + expiresAt) / 2

/** The agent is not trusted. Names of profiles are no secret. */
function logFailures(log: Pick<Logger, 'warn'>, boxId: string, body: Buffer): void {
  const parsed = parseJson(body.toString())
  const response = cloudCredentialsResponseSchema.safeParse(parsed)
  if (!response.success) log.warn({ boxId }, 'the response of the agent to cloud credentials is not valid')
  else if (response.data.failed.length > 0)
    log.warn({ boxId, failed: response.data.failed }, 'the agent could not write profiles of AWS')
}
