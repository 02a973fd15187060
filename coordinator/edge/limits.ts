// The edge's limits (spec §8): requests per second and concurrent requests, per API key and per box; streams per API key. The
// keys of a user, and those of a workspace, have limits together too.
import { ApiError } from '../../shared/errors.ts'
import { createRateLimiter, rejectLimited } from '../base/rate-limiter.ts'
import { listShares, rejectFull, type Slot, Slots, type Subject } from '../base/slots.ts'

export type EdgeLimits = {
  /** Per API key and per box. */
  requestsPerSecond: number
  /** Concurrent requests per API key and per box. */
  concurrency: number
  /** Concurrent streams per API key. Each also counts as a concurrent request. */
  streams: number
  /** Concurrent attached connections per API key and per box. They do not count as requests. */
  attachments: number
  /** Concurrent forwarded TCP connections per API key and per box. They do not count as requests. */
  forwards: number
  /** Open terminals per workspace. Each also counts as an attachment. */
  terminals: number
  /** Concurrent requests, attached connections and forwarded connections, of each of these kinds: of all keys of a user. */
  perUser: number
  /** The same of all keys of a workspace. */
  perWorkspace: number
}

/**
 * Forwarded connections that are opened per second, per API key and per box. They do not count as requests: a browser and a
 * client of a database open many at once.
 */
export const FORWARDS_PER_SECOND = 100

/** The parts of all connections that the requests, attachments or forwards of a user and of a workspace may use. */
export const EDGE_SHARES = { user: 1 / 8, workspace: 1 / 4 } as const

/** The limit that a rejected request has reached. */
export type EdgeLimit = 'rate' | 'requests' | 'streams' | 'attachments' | 'forwards' | 'terminals'

/** `prompt-stream` has the events of a prompt or a conversation, and `attachment` the bytes of a running command. */
export type ConnectionKind = 'request' | 'stream' | 'prompt-stream' | 'attachment' | 'terminal' | 'forward'

export type AcquireSlotOptions = {
  /** Default: request. */
  kind?: ConnectionKind
  /** The terminals that the plan of the workspace has. Default: those of the deployment. */
  terminalLimit?: number | undefined
}

/** countRequest() and acquire() reject with rate_limited and Retry-After in seconds, or with customer_session_limit. */
export type EdgeLimiter = {
  /** Counts a request or a forwarded connection of the API key, before anything else is checked. */
  countRequest(keyId: string, isForward?: boolean): Promise<void>
  /**
   * Counts a request to the box, and acquires a slot of the API key, its user, its workspace and the box. Returns the release function, to be
   * called when the response is closed. When it rejects, nothing is acquired.
   */
  acquire(subject: Subject, boxId: string, options?: AcquireSlotOptions): Promise<() => void>
  /** Makes hasRequests() return true until the returned function is called. Holds no slot. */
  hold(boxId: string): () => void
  /**
   * Whether a request to the box, other than a stream or a forwarded connection, holds a slot, or hold() was called. An attached
   * connection counts as a request.
   */
  hasRequests(boxId: string): boolean
  /**
   * Call for a connection that holds a slot and that its client can resume on the next agent. hasInterruptibleRequests() ignores it
   * until the returned function is called.
   */
  setResumable(boxId: string): () => void
  /** Like hasRequests(), without the connections that can be resumed: those that a restart of the agent would interrupt. */
  hasInterruptibleRequests(boxId: string): boolean
  /** Whether any request or connection to the box holds a slot, or hold() was called. */
  isInUse(boxId: string): boolean
  /** Acquired slots, for tests and metrics. */
  acquiredCount(): number
}

const isStreamKind = (kind: ConnectionKind): boolean => kind === 'stream' || kind === 'prompt-stream'

/** Retry-After when no slot is free. When a request or stream ends is unknown. */
const SLOT_RETRY_MS = 1000

export function createEdgeLimiter(
  limits: EdgeLimits,
  { onReject = () => undefined }: { onReject?: ((limit: EdgeLimit) => void) | undefined } = {},
): EdgeLimiter {
  const { requestsPerSecond, concurrency, streams, attachments, forwards, terminals } = limits
  const requestRate = createRateLimiter({ requests: requestsPerSecond, seconds: 1 })
  const forwardRate = createRateLimiter({ requests: FORWARDS_PER_SECOND, seconds: 1 })
  const slots = new Slots()
  /** Requests that hold a slot, without streams. */
  const requestsByBox = new Map<string, number>()
  /** Streams and forwarded connections that hold a slot. */
  const connectionsByBox = new Map<string, number>()
  const resumableByBox = new Map<string, number>()

  /** What the slots of a key and of a box are for. */
  const requestLimit = { name: 'requests', limit: concurrency, noun: 'concurrent requests' } as const
  const attachmentLimit = { name: 'attachments', limit: attachments, noun: 'attached connections' } as const
  const forwardLimit = { name: 'forwards', limit: forwards, noun: 'forwarded connections' } as const
  const limitsByKind = {
    request: requestLimit,
    stream: requestLimit,
    'prompt-stream': requestLimit,
    attachment: attachmentLimit,
    terminal: attachmentLimit,
    forward: forwardLimit,
  } as const satisfies Record<ConnectionKind, object>

  async function count(key: string, holder: string, isForward: boolean): Promise<void> {
    const waitMs = await (isForward ? forwardRate : requestRate).count(key)
    if (waitMs === 0) return
    onReject('rate')
    const limit = isForward ? `${FORWARDS_PER_SECOND} forwarded connections` : `${requestsPerSecond} requests`
    rejectLimited(waitMs, `${holder} has reached the limit of ${limit} per second.`)
  }

  /** The slots of a request or connection. The limit of an operator for one key may be above those of users and workspaces. */
  function listSlots(subject: Subject, boxId: string, kind: ConnectionKind): Slot[] {
    const { limit, noun } = limitsByKind[kind]
    const shares = listShares(noun, subject, {
      perCredential: limit,
      perUser: Math.max(limit, limits.perUser),
      perWorkspace: Math.max(limit, limits.perWorkspace),
    })
    return [...shares, { key: `${noun} box ${boxId}`, limit, holder: 'This box', noun }]
  }

  /** @param release called when the returned function is called for the first time */
  function countOne(
    counts: Map<string, number>,
    boxId: string,
    release: () => void = () => undefined,
  ): () => void {
    counts.set(boxId, (counts.get(boxId) ?? 0) + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const count = (counts.get(boxId) ?? 0) - 1
      if (count > 0) counts.set(boxId, count)
      else counts.delete(boxId)
      release()
    }
  }

  return {
    hold: (boxId) => countOne(requestsByBox, boxId),
    countRequest: (keyId, isForward = false) => count(`key:${keyId}`, 'This API key', isForward),
    async acquire(subject, boxId, options = {}) {
      const { kind = 'request', terminalLimit = terminals } = options
      const { credentialId, workspaceId } = subject
      const isStream = isStreamKind(kind)
      const isForward = kind === 'forward'
      const stream: Slot = {
        key: `streams ${credentialId}`,
        limit: streams,
        holder: 'This API key',
        noun: 'concurrent streams',
      }
      const terminal: Slot = {
        key: `terminals ${workspaceId}`,
        limit: terminalLimit,
        holder: 'The workspace',
        noun: 'open terminals',
      }
      await count(`box:${boxId}`, 'This box', isForward)
      const acquisition = slots.acquire([
        ...(isStream ? [stream] : []),
        ...(kind === 'terminal' ? [terminal] : []),
        ...listSlots(subject, boxId, kind),
      ])
      if ('release' in acquisition) {
        const counts = isStream || isForward ? connectionsByBox : requestsByBox
        return countOne(counts, boxId, acquisition.release)
      }
      const { full } = acquisition
      if (full === terminal) {
        onReject('terminals')
        throw new ApiError(
          'customer_session_limit',
          `The workspace has reached its limit of ${terminalLimit} open terminals. Close one first.`,
        )
      }
      onReject(full === stream ? 'streams' : limitsByKind[kind].name)
      return rejectFull(full, SLOT_RETRY_MS)
    },
    hasRequests: (boxId) => requestsByBox.has(boxId),
    isInUse: (boxId) => requestsByBox.has(boxId) || connectionsByBox.has(boxId),
    setResumable: (boxId) => countOne(resumableByBox, boxId),
    hasInterruptibleRequests: (boxId) => (requestsByBox.get(boxId) ?? 0) > (resumableByBox.get(boxId) ?? 0),
    acquiredCount: () => slots.size,
  }
}
