// Repeats a request to a box, which executes it once, until the agent has responded.
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../../shared/errors.ts'
import { withDeadline } from '../agents/tunnel/deadline.ts'
import type { Tunnel } from '../agents/tunnel/types.ts'
import type { AcquiredBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'

/** A closed tunnel may still be registered for a moment. */
const RETRY_DELAY_MS = 100
/** An agent that restarts reconnects within seconds. Otherwise the box may have been suspended. */
const RECONNECT_TIMEOUT_MS = 60_000

export const isUnreachable = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'box_unreachable'

/**
 * Calls `attempt` again on the next tunnel when it rejects with box_unreachable.
 * @param timeoutMs for all attempts together
 */
export async function repeatWhileUnreachable<T>(
  tunnels: EdgeContext['tunnels'],
  { box, tunnel, signal }: AcquiredBox,
  timeoutMs: number,
  attempt: (tunnel: Tunnel, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  return withDeadline(timeoutMs, signal, async (signal) => {
    for (let current = tunnel; ; ) {
      try {
        return await attempt(current, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (!isUnreachable(error)) throw error
      }
      await sleep(RETRY_DELAY_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
      const remainingMs = Math.min(RECONNECT_TIMEOUT_MS, deadline - performance.now())
      current = await tunnels.wait(box.id, remainingMs, signal)
    }
  })
}
