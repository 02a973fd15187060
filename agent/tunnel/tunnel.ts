// Keeps the agent connected: connects, serves the routes on the connection, checks its liveness, and reconnects.
import { setTimeout as sleep } from 'node:timers/promises'
import { type BackoffSettings, backoffDelay, equalJitter, fullJitter } from '../../shared/backoff.ts'
import type { Clock } from '../../shared/clock.ts'
import {
  checkLiveness,
  isLateCheck,
  LIVENESS,
  type LivenessSettings,
  newLivenessState,
} from '../../shared/liveness.ts'
import { type Connection, connect } from './connect.ts'
import type { DisconnectReason } from './disconnect-reason.ts'
import { noProxy, type SelectProxy } from './proxy.ts'
import type { ServeOptions } from './serve-connection.ts'

export type AgentTunnelOptions = ServeOptions & {
  boxId: string
  /** URL and token are read again for each attempt: changing them needs no restart. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  /** Further headers of the tunnel, read again for each attempt. */
  readHeaders?(): Promise<Record<string, string>>
  /** The key with which the coordinator proves its identity, in the PEM format, read again for each attempt. Default: none. */
  readCoordinatorKey?: (() => Promise<string>) | undefined
  /** Default: no proxy. */
  selectProxy?: SelectProxy
  instanceId: string
  onConnected?: (() => void) | undefined
  /** Called when a connection has closed, and when an attempt has failed. */
  onDisconnected?: ((reason: DisconnectReason) => void) | undefined
  clock: Clock
  random?: () => number
  liveness?: LivenessSettings
  backoff?: BackoffSettings
  /** A connection of this duration resets the backoff; a shorter one reduces it. Default: 10 s. */
  stableAfterMs?: number
  /** Default: 10 s. */
  handshakeTimeoutMs?: number
}

export type AgentTunnel = { close(): Promise<void> }

/** Upper bound of a delay that the coordinator requests. */
const MAX_RECONNECT_AFTER_MS = 10 * 60_000
/** How long close() waits for the coordinator's close frame. */
const CLOSE_TIMEOUT_MS = 1000

/**
 * HTTP statuses of rejections that a retry is unlikely to change. 401: unknown box or wrong token. 409: another agent is
 * connected. 410: the box of this machine has been deleted. 426: unsupported protocol version. 403 and 404: from a proxy or another server.
 */
const PERSISTENT_REJECTION_STATUSES = new Set([401, 403, 404, 409, 410, 426])

/** Connects immediately and reconnects until closed. */
export function startTunnel(options: AgentTunnelOptions): AgentTunnel {
  const closeController = new AbortController()
  const stopped = keepConnected(options, closeController.signal)
  return {
    close() {
      closeController.abort()
      return stopped
    },
  }
}

async function keepConnected(options: AgentTunnelOptions, signal: AbortSignal): Promise<void> {
  const { log, clock } = options
  const random = options.random ?? Math.random
  const backoff = options.backoff ?? { baseMs: 500, maxMs: 30_000 }
  let failures = 0
  while (!signal.aborted) {
    const { disconnect, connectedMs } = await connectAndServe(options, signal, random, clock)
    if (signal.aborted) return
    options.onDisconnected?.(disconnect)
    failures = forgetFailures(failures, connectedMs, options.stableAfterMs ?? 10_000)
    const waitMs = reconnectDelay(disconnect, failures, backoff, random)
    failures += 1
    const level = disconnect.status === undefined ? 'info' : 'warn'
    log[level]({ reason: disconnect.reason, connectedMs, waitMs }, 'tunnel disconnected; will reconnect')
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

/** After a short connection, the next delay is at most 2 s by default. */
const FAILURES_AFTER_CONNECTION = 2

/**
 * Exported for tests. Returns the failures that count for the next delay. A connection, also a short one, shows that the
 * coordinator worked: the failed attempts of an earlier outage, for example of a restart, no longer count.
 */
export function forgetFailures(failures: number, connectedMs: number, stableAfterMs: number): number {
  if (connectedMs >= stableAfterMs) return 0
  return connectedMs > 0 ? Math.min(failures, FAILURES_AFTER_CONNECTION) : failures
}

/** Exported for tests. Milliseconds until the next attempt. */
export function reconnectDelay(
  { status, reconnectAfterMs }: DisconnectReason,
  failures: number,
  backoff: BackoffSettings,
  random: () => number,
): number {
  if (reconnectAfterMs !== undefined) return Math.min(reconnectAfterMs, MAX_RECONNECT_AFTER_MS)
  if (status !== undefined && PERSISTENT_REJECTION_STATUSES.has(status))
    return equalJitter(backoff.maxMs, random)
  return backoffDelay(failures, backoff, fullJitter, random)
}

async function connectAndServe(
  options: AgentTunnelOptions,
  signal: AbortSignal,
  random: () => number,
  clock: Clock,
): Promise<{ disconnect: DisconnectReason; connectedMs: number }> {
  let url: string
  let token: string
  let headers: Record<string, string>
  let coordinatorKey: string | undefined
  try {
    url = await options.readUrl()
    token = await options.readToken()
    headers = (await options.readHeaders?.()) ?? {}
    coordinatorKey = await options.readCoordinatorKey?.()
  } catch (error) {
    return {
      disconnect: {
        reason: `cannot read the URL, the token or the key of the coordinator: ${(error as Error).message}`,
      },
      connectedMs: 0,
    }
  }
  const { boxId, instanceId, selectProxy = noProxy, router, log } = options
  const handshakeTimeoutMs = options.handshakeTimeoutMs ?? 10_000
  const result = await connect(
    { url, boxId, token, instanceId, headers, handshakeTimeoutMs, selectProxy, coordinatorKey, router, log },
    signal,
  )
  if ('failed' in result) return { disconnect: result.failed, connectedMs: 0 }
  const connectedAt = clock.now()
  log.info({ url }, 'tunnel connected')
  options.onConnected?.()
  const disconnect = await waitUntilClosed(result.connection, options, signal, random)
  return { disconnect, connectedMs: Math.max(0, clock.now() - connectedAt) }
}

/** Checks the liveness of the connection until it closes. */
async function waitUntilClosed(
  connection: Connection,
  { clock, liveness = LIVENESS }: AgentTunnelOptions,
  signal: AbortSignal,
  random: () => number,
): Promise<DisconnectReason> {
  const close = () => {
    connection.close()
    setTimeout(() => connection.terminate('closed'), CLOSE_TIMEOUT_MS).unref()
  }
  if (signal.aborted) close()
  signal.addEventListener('abort', close, { once: true })
  const livenessState = newLivenessState(liveness, random)
  let lastCheckAt = clock.now()
  const timer = setInterval(() => {
    const now = clock.now()
    const observed = { bytes: connection.bytesRead(), elapsedMs: now - lastCheckAt }
    lastCheckAt = now
    const verdict = checkLiveness(livenessState, observed, liveness, random)
    if (verdict === 'ping') connection.ping()
    if (verdict === 'dead') connection.terminate('liveness timeout')
  }, liveness.tickMs)
  try {
    const disconnect = await connection.closed
    const wasFrozen = isLateCheck(clock.now() - lastCheckAt, liveness)
    // The coordinator may have restarted while this process was frozen: its absence says nothing about its load.
    return wasFrozen ? { reconnectAfterMs: 0, ...disconnect } : disconnect
  } finally {
    clearInterval(timer)
    signal.removeEventListener('abort', close)
  }
}
