// Asks an agent how long its box has been idle. Agents are untrusted: time, size and schema are checked.
import { activitySchema } from '../../../shared/api/activity.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'

const TIMEOUT_MS = 5_000
const MAX_BYTES = 4096

/** Rejects when the agent is not connected, and when it does not respond correctly in time. */
export async function readIdleSeconds(
  boxId: string,
  tunnels: Pick<Tunnels, 'local'>,
  closing: AbortSignal,
): Promise<number> {
  const tunnel = tunnels.local(boxId)
  if (tunnel === undefined) throw new Error('the agent is not connected')
  const call = { method: 'GET', path: '/activity', signal: closing, timeoutMs: TIMEOUT_MS } as const
  const { status, body } = await tunnel.call({ ...call, maxBytes: () => MAX_BYTES })
  if (status !== 200) throw new Error(`GET /activity returned status ${status}`)
  return activitySchema.parse(JSON.parse(body.toString())).idleForSec
}
