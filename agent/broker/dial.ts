// Opens the connection for a CONNECT request: to the coordinator for the host of a secret, else to the target itself.
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import { LocalSocket } from '../ports/local-socket.ts'
import type { WebSocketDialer } from '../tunnel/websocket-dialer.ts'
import type { ConnectTarget } from './connect-target.ts'
import { Refusal } from './refusal.ts'

const CONNECT_TIMEOUT_MS = 30_000
/** A coordinator that is being upgraded listens again within seconds. */
const RETRY_MS = 10_000
const RETRY_DELAY_MS = 250
/** The coordinator does not listen, or is stopping. */
const UNREACHABLE = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT'])

export type CoordinatorDialOptions = {
  dialer: Pick<WebSocketDialer, 'connect'>
  signal: AbortSignal
  /** How long attempts are repeated while the coordinator does not listen. Default: 10 s. */
  retryMs?: number | undefined
}

/** @throws Refusal */
export async function dialCoordinator(
  { host }: ConnectTarget,
  { dialer, signal, retryMs = RETRY_MS }: CoordinatorDialOptions,
): Promise<Duplex> {
  const ws = await connectWithRetries(host, dialer, signal, performance.now() + retryMs).catch(
    (error: unknown) => {
      throw toRefusal(host, error)
    },
  )
  const connection = new TcpOverWebSocket(ws)
  if (signal.aborted) connection.destroy()
  return connection
}

async function connectWithRetries(
  host: string,
  dialer: Pick<WebSocketDialer, 'connect'>,
  signal: AbortSignal,
  deadline: number,
): Promise<WebSocket> {
  for (;;) {
    try {
      return await dialer.connect(host)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (!UNREACHABLE.has(code) || performance.now() > deadline) throw error
    }
    await delay(RETRY_DELAY_MS, undefined, { signal })
  }
}

/** How the ws package reports the response to an upgrade. */
const REJECTED = /^Unexpected server response: (\d{3})$/

function toRefusal(host: string, error: unknown): Refusal {
  const message = error instanceof Error ? error.message : String(error)
  const status = Number(REJECTED.exec(message)?.[1])
  if (status === 403) return new Refusal(403, `no secret that is mounted on this box covers ${host}.`)
  if (status === 429) return new Refusal(503, 'this box has too many connections to hosts of its secrets.')
  return new Refusal(502, `the coordinator did not open a connection to ${host}: ${message}`)
}

/** @throws Refusal */
export async function dialTarget({ host, port }: ConnectTarget, signal: AbortSignal): Promise<Duplex> {
  const socket = new LocalSocket({ allowHalfOpen: true })
  socket.setNoDelay(true).setKeepAlive(true).connect({ host, port })
  const timeout = AbortSignal.timeout(CONNECT_TIMEOUT_MS)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = () => reject(new Error('the connection timed out'))
  const deadline = AbortSignal.any([signal, timeout])
  deadline.addEventListener('abort', onAbort)
  socket.once('connect', resolve)
  // An error after the connection was established must not be an uncaught exception.
  socket.on('error', reject)
  try {
    await promise
    if (signal.aborted) socket.destroy()
    return socket
  } catch (error) {
    socket.destroy()
    throw new Refusal(502, `cannot connect to ${host}:${port}: ${describe(error)}`)
  } finally {
    deadline.removeEventListener('abort', onAbort)
  }
}

/** Node combines the errors of the addresses of a host without a message. */
function describe(error: unknown): string {
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : String(first)
}
