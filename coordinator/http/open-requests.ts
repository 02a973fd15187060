// Ends open requests whose credential may no longer send them: streams, transfers and slow bodies outlive the check at their
// start (spec §5.4).
import type { ServerResponse } from 'node:http'
import pLimit from 'p-limit'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { AccessChange } from './access-changes.ts'
import type { Actor } from './actor.ts'

export type OpenRequest = {
  /** Aborts when the client disconnects, and with an ApiError when the credential may no longer send the request. */
  readonly signal: AbortSignal
  /**
   * Adds a check of the actor to those of later changes. Rejects with an ApiError when a change since the authentication
   * does not allow the request.
   */
  addCheck(check: (actor: Actor) => Promise<unknown>): Promise<void>
  /**
   * Resolves to the actor with its rights of now. Rejects with an ApiError when a change since the authentication does not
   * allow the request.
   */
  confirm(): Promise<Actor>
}

export type NewOpenRequest = {
  /** Authenticated when `changeCount` was `changesBefore`. */
  actor: Actor
  changesBefore: number
  /** Authenticates the request again. Rejects with an ApiError when the credential may not send it any more. */
  authenticate(): Promise<Actor>
  response: ServerResponse
}

export type OpenRequests = {
  /** Checks the affected open requests again. */
  onAccessChange(change: AccessChange): void
  /** Checks all open requests again, because changes may have been missed. */
  onMissedChanges(): void
  /**
   * Number of calls of both functions. Read it before a request is authenticated. A change that another coordinator commits
   * after the request was authenticated arrives later, so it finds another number, or the registered request.
   */
  readonly changeCount: number
  /** Registers a request until its response is closed. */
  add(request: NewOpenRequest): OpenRequest
  /** Number of registered requests. */
  readonly size: number
}

type Entry = Omit<NewOpenRequest, 'changesBefore'> & {
  disconnected: AbortController
  check: (actor: Actor) => Promise<unknown>
  /** Number of started checks. */
  checks: number
  /** The number of the check that has set `actor`. */
  appliedCheck: number
  /** Checks again when the credential expires. */
  expiryTimer: NodeJS.Timeout | undefined
  /** Destroys the connection after the grace period. */
  endTimer: NodeJS.Timeout | undefined
}

/** The time for the error response, the final event or the close frame. Then the connection is destroyed. */
const END_GRACE_MS = 2_000
/** Of checks at once, when all requests are checked: the others wait, so that new requests get connections to the database. */
const MAX_CHECKS_OF_ALL = 8
/** The longest delay of setTimeout(), about 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

export type OpenRequestsOptions = { clock: Clock; graceMs?: number }

export function createOpenRequests({ clock, graceMs = END_GRACE_MS }: OpenRequestsOptions): OpenRequests {
  const byWorkspace = new Map<string, Set<Entry>>()
  let changeCount = 0

  async function check(entry: Entry): Promise<void> {
    entry.checks += 1
    const number = entry.checks
    try {
      const actor = await entry.authenticate()
      await entry.check(actor)
      // A check that started later has read newer rows.
      if (number < entry.appliedCheck) return
      entry.appliedCheck = number
      entry.actor = actor
      armExpiryTimer(entry)
    } catch (error) {
      end(entry, toEndError(error))
    }
  }

  /** The expiry of a credential may move: it is read again when the timer fires. */
  function armExpiryTimer(entry: Entry): void {
    clearTimeout(entry.expiryTimer)
    const { expiresAt } = entry.actor.credential
    if (expiresAt === null || entry.disconnected.signal.aborted || entry.response.closed) return
    const delayMs = Math.min(Math.max(expiresAt - clock.now(), 1), MAX_TIMER_MS)
    entry.expiryTimer = setTimeout(() => void check(entry), delayMs).unref()
  }

  function end(entry: Entry, error: ApiError): void {
    const { disconnected, response } = entry
    if (disconnected.signal.aborted || response.closed) return
    clearTimeout(entry.expiryTimer)
    disconnected.abort(error)
    entry.endTimer = setTimeout(() => response.destroy(), graceMs).unref()
  }

  function register(entry: Entry): void {
    const { actor, response, disconnected } = entry
    const entries = byWorkspace.get(actor.workspaceId) ?? new Set()
    byWorkspace.set(actor.workspaceId, entries.add(entry))
    response.once('close', () => {
      entries.delete(entry)
      if (entries.size === 0 && byWorkspace.get(actor.workspaceId) === entries)
        byWorkspace.delete(actor.workspaceId)
      clearTimeout(entry.expiryTimer)
      clearTimeout(entry.endTimer)
      if (!response.writableFinished) disconnected.abort()
    })
    armExpiryTimer(entry)
  }

  return {
    onAccessChange(change) {
      changeCount += 1
      for (const entry of byWorkspace.get(change.workspaceId) ?? [])
        if (isAffected(entry.actor, change)) void check(entry)
    },
    onMissedChanges() {
      changeCount += 1
      const limit = pLimit(MAX_CHECKS_OF_ALL)
      for (const entries of byWorkspace.values()) for (const entry of entries) void limit(() => check(entry))
    },
    get changeCount() {
      return changeCount
    },
    add({ changesBefore, ...request }) {
      const disconnected = new AbortController()
      const { signal } = disconnected
      const entry: Entry = {
        ...request,
        disconnected,
        check: async () => undefined,
        checks: 0,
        appliedCheck: 0,
        expiryTimer: undefined,
        endTimer: undefined,
      }
      // The client disconnected before the listener was added.
      if (request.response.destroyed) disconnected.abort()
      else register(entry)
      if (changeCount !== changesBefore) void check(entry)
      return {
        signal,
        async addCheck(added) {
          entry.check = added
          if (entry.checks > 0) await check(entry)
          signal.throwIfAborted()
        },
        async confirm() {
          if (entry.checks > 0) await check(entry)
          // The request of a client that has disconnected meanwhile is complete.
          if (signal.reason instanceof ApiError) throw signal.reason
          return entry.actor
        },
      }
    },
    get size() {
      let size = 0
      for (const entries of byWorkspace.values()) size += entries.size
      return size
    },
  }
}

function isAffected({ userId, credential }: Actor, change: AccessChange): boolean {
  if (change.userId !== undefined && change.userId !== userId) return false
  // The change may be the end of the session of a ticket.
  return (
    change.credentialId === undefined || change.credentialId === credential.id || credential.type === 'ticket'
  )
}

/** The messages of authenticate() are for new requests. */
function toEndError(error: unknown): ApiError {
  if (!(error instanceof ApiError))
    return new ApiError(
      'control_plane_unavailable',
      'The coordinator cannot check the access of the request.',
      {
        cause: error,
      },
    )
  if (error.code !== 'unauthorized') return error
  return new ApiError(
    'unauthorized',
    'The credential of this request was revoked, or its session has ended. Use another credential.',
    { headers: error.headers },
  )
}
