// Requests a dial-back connection from the agent and waits for it.
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { withDeadline } from '../agents/tunnel/deadline.ts'
import type { PendingDialBack } from '../agents/tunnel/types.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { MAX_ERROR_BYTES, throwAgentError } from './agent-response.ts'

/** The agent responds immediately, whatever the process does. */
const OPEN_TIMEOUT_MS = 30_000

type DialBackRequest = {
  /** Path and query on the agent. */
  path: string
  headers?: Record<string, string>
}

/**
 * @param dialBacks `streams` or `sockets` of the edge context
 * @returns the connection
 * @throws ApiError the agent's error response, or box_unreachable
 */
export async function openDialBack<T>(
  dialBacks: { expect(boxId: string): PendingDialBack<T> },
  { box, tunnel, signal }: AcquiredBox,
  { path, headers }: DialBackRequest,
): Promise<T> {
  const pending = dialBacks.expect(box.id)
  try {
    return await withDeadline(OPEN_TIMEOUT_MS, signal, async (signal) => {
      const response = await tunnel.call({
        method: 'GET',
        path,
        headers: { ...headers, [DIAL_BACK_HEADER]: pending.id },
        signal,
        timeoutMs: OPEN_TIMEOUT_MS,
        maxBytes: () => MAX_ERROR_BYTES,
      })
      if (response.status !== 200) return throwAgentError(response)
      signal.addEventListener('abort', pending.discard, { once: true })
      const connection = await pending.connection
      signal.throwIfAborted()
      signal.removeEventListener('abort', pending.discard)
      return connection
    })
  } catch (error) {
    pending.discard()
    throw error
  }
}
