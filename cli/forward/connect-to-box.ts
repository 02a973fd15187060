// Opens the connection to a port of a box for one local connection, with retries.
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { backoffDelay, fullJitter } from '../../shared/backoff.ts'
import { isUnreachable } from '../connection/api-errors.ts'
import type { FailedAttempt } from '../connection/api-requests.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { CliError } from '../output/exit-codes.ts'

export type ConnectOptions = {
  signal: AbortSignal
  /** No retry starts after this time. Default: 30 s. */
  maxWaitMs?: number
}

const MAX_WAIT_MS = 30_000
const BACKOFF = { baseMs: 250, maxMs: 2000 }

/**
 * Retries while the limits of the coordinator are reached, while it restarts, and while the box is being connected again.
 * Resolves with a paused WebSocket. Rejects with CliError, or with the reason of the signal.
 */
export async function connectToBox(
  edge: Pick<EdgeClient, 'connect'>,
  port: number,
  { signal, maxWaitMs = MAX_WAIT_MS }: ConnectOptions,
): Promise<WebSocket> {
  const deadline = performance.now() + maxWaitMs
  for (let attempt = 0; ; attempt++) {
    const failure = await attemptConnect(edge, port, signal)
    if ('socket' in failure) return failure.socket
    const { error, retryAfter } = failure
    const delayMs = (retryAfter ?? 0) * 1000 + backoffDelay(attempt, BACKOFF, fullJitter)
    if (!failure.isTemporary || performance.now() + delayMs > deadline) throw error
    await sleep(delayMs, undefined, { signal })
  }
}

type Attempt = { socket: WebSocket } | { error: CliError; retryAfter: number | null; isTemporary: boolean }

async function attemptConnect(
  edge: Pick<EdgeClient, 'connect'>,
  port: number,
  signal: AbortSignal,
): Promise<Attempt> {
  try {
    const result = await edge.connect(`/ports/${port}`, {}, signal)
    if (result.ok) return { socket: result.socket }
    return { error: result.error, retryAfter: result.retryAfter, isTemporary: isTemporary(result) }
  } catch (error) {
    signal.throwIfAborted()
    if (!isUnreachable(error)) throw error
    return { error, retryAfter: null, isTemporary: true }
  }
}

/** An error response without a code comes from a proxy, for example while the coordinator restarts. */
const isTemporary = ({ status, error }: FailedAttempt): boolean =>
  status === 429 || status === 408 || status === 503 || (status >= 500 && error.code !== 'exec_failed')
