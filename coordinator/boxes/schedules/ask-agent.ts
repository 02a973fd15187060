// Asks an agent how long its box has been idle. Agents are untrusted: time, size and schema are checked.
import { activitySchema } from '../../../shared/api/activity.ts'
import { readBody } from '../../agents/tunnel/read-response.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'

const TIMEOUT_MS = 5_000
const MAX_BYTES = 4096

/** Rejects when the agent is not connected, and when it does not respond correctly in time. */
export async function readIdleSeconds(
  boxId: string,
  tunnels: Pick<Tunnels, 'current'>,
  closing: AbortSignal,
): Promise<number> {
  const tunnel = tunnels.current(boxId)
  if (tunnel === undefined) throw new Error('the agent is not connected')
  const signal = AbortSignal.any([closing, AbortSignal.timeout(TIMEOUT_MS)])
  const { status, body } = await tunnel.request({ method: 'GET', path: '/activity', signal })
  const bytes = await readBody(body, MAX_BYTES)
  if (status !== 200) throw new Error(`GET /activity returned status ${status}`)
  return activitySchema.parse(JSON.parse(bytes.toString())).idleForSec
}
