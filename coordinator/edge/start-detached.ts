// Starts a detached command (spec §4.14). A lost connection neither loses the start nor repeats it.
import type { AgentExecRequest } from '../../shared/api/exec.ts'
import type { AgentStartRequest } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import type { TrackedCommand } from '../history/commands/command-tracker.ts'
import type { AcquiredBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { isUnreachable, repeatWhileUnreachable } from './repeat-request.ts'
import { requestAgent } from './request-agent.ts'

/** Limits all attempts together. */
const START_TIMEOUT_MS = 30_000

/**
 * Sends the start request, and repeats it with the same id when the tunnel closed before the response: agents start an id
 * once.
 * @param timeoutMs for all attempts together
 * @returns exec.started as JSON. Rejects with box_unreachable, naming the id: the command may have been started.
 */
export async function startDetached(
  context: Pick<EdgeContext, 'tunnels' | 'responseParser'>,
  acquired: AcquiredBox,
  request: AgentExecRequest,
  { record, acceptResponse }: TrackedCommand,
  timeoutMs: number = START_TIMEOUT_MS,
): Promise<Buffer> {
  const processId = record.commandId
  const start: AgentStartRequest = { ...request, detached: true, processId }
  const body = JSON.stringify(start)

  async function attempt(tunnel: AcquiredBox['tunnel'], signal: AbortSignal): Promise<Buffer> {
    const started = await requestAgent(
      context,
      { tunnel, signal },
      { method: 'POST', path: '/exec', body, type: 'exec.started', timeoutMs },
    )
    if (started.processId !== processId)
      throw createAgentProtocolError('The agent responded for a different process.')
    acceptResponse(started)
    return started.json
  }

  try {
    return await repeatWhileUnreachable(context.tunnels, acquired, timeoutMs, attempt)
  } catch (error) {
    if (!isUnreachable(error)) throw error
    throw new ApiError(
      'box_unreachable',
      `The box did not respond in time. The command may have been started as ${processId}. Check with GET /exec.`,
      { cause: error },
    )
  }
}
