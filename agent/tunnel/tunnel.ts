// Keeps the box reachable: dials, serves the app on the connection, watches it, and dials again.
import type { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { checkLiveness, LIVENESS, type LivenessSettings, newLivenessState } from '../../shared/liveness.ts'
import { type BackoffSettings, backoffMs, slowRetryMs } from './backoff.ts'
import { type Connection, dial, type Disconnect } from './dial.ts'

export type AgentTunnelOptions = {
  boxId: string
  /** Both are read anew for each attempt, so that a coordinator that moved or a replaced token needs no restart. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  instanceId: string
  /** The app's HTTP/2 server: connections are handed to it. */
  server: EventEmitter
  log: Logger
  clock: Clock
  random?: () => number
  liveness?: LivenessSettings
  backoff?: BackoffSettings
  /** A connection that lasted this long resets the back-off. */
  stableAfterMs?: number
  handshakeTimeoutMs?: number
}

export type AgentTunnel = { close(): Promise<void> }

/** No coordinator can keep a box away for longer than this. */
const MAX_RECONNECT_AFTER_MS = 10 * 60_000

/** 401: the token is wrong. 409: another agent holds the box. 426: we speak another version. */
const HARDLY_TEMPORARY = new Set([401, 403, 404, 409, 426])

/** Starts at once and goes on until closed. */
export function startTunnel(options: AgentTunnelOptions): AgentTunnel {
  const stop = new AbortController()
  const running = keepConnected(options, stop.signal)
  return {
    close() {
      stop.abort()
      return running
    },
  }
}

async function keepConnected(options: AgentTunnelOptions, signal: AbortSignal): Promise<void> {
  const { log, clock } = options
  const random = options.random ?? Math.random
  const backoff = options.backoff ?? { baseMs: 500, maxMs: 30_000 }
  let failures = 0
  while (!signal.aborted) {
    const { ending, connectedMs } = await connectOnce(options, signal, random, clock)
    if (signal.aborted) return
    if (connectedMs >= (options.stableAfterMs ?? 10_000)) failures = 0
    const waitMs = retryDelay(ending, failures, backoff, random)
    failures += 1
    const level = ending.status === undefined ? 'info' : 'warn'
    log[level]({ reason: ending.reason, connectedMs, waitMs }, 'tunnel down, will dial again')
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

/** Exported for its tests: how long to wait after an ending. */
export function retryDelay(
  ending: Disconnect,
  failures: number,
  backoff: BackoffSettings,
  random: () => number,
): number {
  if (ending.reconnectAfterMs !== undefined) return Math.min(ending.reconnectAfterMs, MAX_RECONNECT_AFTER_MS)
  if (ending.status !== undefined && HARDLY_TEMPORARY.has(ending.status)) return slowRetryMs(backoff, random)
  return backoffMs(failures, backoff, random)
}

async function connectOnce(
  options: AgentTunnelOptions,
  signal: AbortSignal,
  random: () => number,
  clock: Clock,
): Promise<{ ending: Disconnect; connectedMs: number }> {
  let url: string
  let token: string
  try {
    url = await options.readUrl()
    token = await options.readToken()
  } catch (error) {
    return { ending: { reason: `cannot dial: ${(error as Error).message}` }, connectedMs: 0 }
  }
  const { boxId, instanceId } = options
  const handshakeTimeoutMs = options.handshakeTimeoutMs ?? 10_000
  const result = await dial({ url, boxId, token, instanceId, handshakeTimeoutMs }, signal)
  if ('refused' in result) return { ending: result.refused, connectedMs: 0 }
  const since = clock.now()
  options.log.info({ url }, 'tunnel up')
  const ending = await serve(result.connection, options, signal, random)
  return { ending, connectedMs: Math.max(0, clock.now() - since) }
}

async function serve(
  connection: Connection,
  { server, clock, liveness = LIVENESS }: AgentTunnelOptions,
  signal: AbortSignal,
  random: () => number,
): Promise<Disconnect> {
  const close = () => {
    connection.close()
    // A coordinator that does not answer the goodbye must not hold up our exit.
    setTimeout(() => connection.terminate('closed'), 1000).unref()
  }
  if (signal.aborted) close()
  signal.addEventListener('abort', close, { once: true })
  const pulse = newLivenessState(liveness, random)
  let lastCheck = clock.now()
  const timer = setInterval(() => {
    const now = clock.now()
    const seen = { bytes: connection.bytesRead(), elapsedMs: now - lastCheck }
    lastCheck = now
    const verdict = checkLiveness(pulse, seen, liveness, random)
    if (verdict === 'ping') connection.ping()
    if (verdict === 'dead') connection.terminate('the coordinator went silent')
  }, liveness.tickMs)
  server.emit('connection', connection.duplex)
  try {
    return await connection.closed
  } finally {
    clearInterval(timer)
    signal.removeEventListener('abort', close)
  }
}
