// Opens the connection to a port of a box for one local connection, with retries.
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { BoxwoodError } from '../../client/http/errors.ts'
import { backoffDelay, fullJitter } from '../../shared/backoff.ts'
import type { EdgeClient } from '../connection/client.ts'

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
  edge: Pick<EdgeClient, 'connect' | 'toCliError'>,
  port: number,
  { signal, maxWaitMs = MAX_WAIT_MS }: ConnectOptions,
): Promise<WebSocket> {
  const deadline = performance.now() + maxWaitMs
  const route = `/ports/${port}`
  for (let attempt = 0; ; attempt++) {
    try {
      return await edge.connect(route, {}, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof BoxwoodError)) throw error
      const delayMs = (error.retryAfterMs ?? 0) + backoffDelay(attempt, BACKOFF, fullJitter)
      if (!isTemporary(error) || performance.now() + delayMs > deadline) throw edge.toCliError(error, route)
      await sleep(delayMs, undefined, { signal })
    }
  }
}

/** A response that is not of the coordinator is that of a proxy, for example while the coordinator restarts. */
const isTemporary = ({ status, code }: BoxwoodError): boolean =>
  status === 0 || status === 429 || status === 408 || (status >= 500 && code !== 'exec_failed')
