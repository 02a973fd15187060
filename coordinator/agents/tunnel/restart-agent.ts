// Restarts a connected agent, which then opens a new tunnel.
import { setTimeout as sleep } from 'node:timers/promises'
import { TERMINAL_HOST_VERSIONS } from '../../../shared/agent-build.ts'
import { ApiError, ERRORS } from '../../../shared/errors.ts'
import type { Registry } from './registry.ts'
import type { TunnelCall } from './types.ts'

/** How long an agent may take to respond to a restart request, and then to disconnect. */
const RESTART_TIMEOUT_MS = 5_000

/** See AgentConnections. */
export async function restartAgent(registry: Registry, boxId: string, buildId?: string): Promise<boolean> {
  const session = registry.get(boxId)
  if (session === undefined) throw new ApiError('box_unreachable')
  // From now on requests wait for the next tunnel.
  registry.remove(session, 'the agent restarts')
  let hasRefused = false
  try {
    const { status } = await session.call(createRestartCall(buildId))
    hasRefused = status === ERRORS.rate_limited[0] && !session.retiring.aborted
    if (hasRefused) {
      if (!registry.activate(session)) session.destroy('a newer connection exists')
      return false
    }
    if (status >= 300) throw new Error(`POST /restart returned status ${status}`)
    await Promise.race([session.closed, sleep(RESTART_TIMEOUT_MS, undefined, { ref: false })])
    return true
  } finally {
    if (!hasRefused) session.destroy('the agent restarts')
  }
}

const createRestartCall = (buildId: string | undefined): TunnelCall => ({
  method: 'POST',
  path: '/restart',
  // The build that starts next is of the same project as this coordinator.
  body: JSON.stringify({ buildId, terminalHostVersions: TERMINAL_HOST_VERSIONS }),
  timeoutMs: RESTART_TIMEOUT_MS,
})
