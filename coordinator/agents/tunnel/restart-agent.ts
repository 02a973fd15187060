// Restarts a connected agent, which then opens a new tunnel.
import { setTimeout as sleep } from 'node:timers/promises'
import { TERMINAL_HOST_VERSIONS } from '../../../shared/agent-build.ts'
import { ApiError, ERRORS } from '../../../shared/errors.ts'
import type { Registry } from './registry.ts'
import type { TunnelCall } from './types.ts'

/** How long an agent may take to respond to a restart request, and then to disconnect. */
const RESTART_TIMEOUT_MS = 5_000
const RESTARTS = 'the agent restarts'

/** See AgentConnections. */
export async function restartAgent(registry: Registry, boxId: string, buildId?: string): Promise<boolean> {
  const session = registry.get(boxId)
  // New requests wait for the response: an agent that agrees exits, and its next tunnel serves them.
  if (session === undefined || !registry.hold(session)) throw new ApiError('box_unreachable')
  try {
    const { status } = await session.call(createRestartCall(buildId)).catch((error: unknown) => {
      // Without a response, it is unknown whether the agent exits: requests use its next tunnel.
      registry.remove(session, RESTARTS)
      session.destroy(RESTARTS)
      throw error
    })
    // An agent that responds with an error keeps running.
    if (status === ERRORS.rate_limited[0]) return false
    if (status >= 300) throw new Error(`POST /restart returned status ${status}`)
    registry.remove(session, RESTARTS)
  } finally {
    registry.release(session)
  }
  await Promise.race([session.closed, sleep(RESTART_TIMEOUT_MS, undefined, { ref: false })])
  session.destroy(RESTARTS)
  return true
}

const createRestartCall = (buildId: string | undefined): TunnelCall => ({
  method: 'POST',
  path: '/restart',
  // The build that starts next is of the same project as this coordinator.
  body: JSON.stringify({ buildId, terminalHostVersions: TERMINAL_HOST_VERSIONS }),
  timeoutMs: RESTART_TIMEOUT_MS,
})
