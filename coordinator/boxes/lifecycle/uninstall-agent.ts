// Makes the agent of a deleted machine uninstall itself.
import type { Logger } from 'pino'
import type { Tunnels } from '../../agents/tunnel/types.ts'

/** The agent answers before it uninstalls itself. */
const REQUEST_TIMEOUT_MS = 5_000

/**
 * Never rejects. An agent that is not connected, or does not accept the request, learns of the deletion at its next
 * connection, which is refused with 410.
 */
export async function uninstallAgent(
  boxId: string,
  { tunnels, log }: { tunnels: Pick<Tunnels, 'current'>; log: Pick<Logger, 'warn'> },
): Promise<void> {
  const tunnel = tunnels.current(boxId)
  if (tunnel === undefined) return
  try {
    const { status } = await tunnel.call({
      method: 'POST',
      path: '/uninstall',
      timeoutMs: REQUEST_TIMEOUT_MS,
    })
    if (status >= 300) throw new Error(`POST /uninstall returned status ${status}`)
  } catch (err) {
    log.warn({ err, boxId }, 'the agent of a deleted machine did not accept its uninstallation')
  }
}
