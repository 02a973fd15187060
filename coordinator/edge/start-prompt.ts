// Sends a prompt to the agent of a box (spec §4.16). A lost connection neither loses the prompt nor repeats it.
import type { AgentPromptRequest, PromptRequest } from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import type { AcquiredBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { isUnreachable, repeatWhileUnreachable } from './repeat-request.ts'
import { requestAgent } from './request-agent.ts'

/**
 * Limits all attempts together: the agent may install OpenCode or pi, which takes up to 265 s
 * (`agent/prompts/detection/install-program.ts`). The limit is shorter than the 300 s after which fetch() of Node fails.
 */
const START_TIMEOUT_MS = 290_000

/**
 * Sends the prompt, and repeats it with the same ids when the tunnel closed before the response: agents accept an id once.
 * @returns prompt.started or prompt.queued as JSON. Rejects with box_unreachable, naming the run: the prompt may have been
 *   accepted.
 */
export async function startPrompt(
  { tunnels, responseParser }: Pick<EdgeContext, 'tunnels' | 'responseParser'>,
  acquired: AcquiredBox,
  prompt: PromptRequest,
  boxEnv: Record<string, string>,
  timeoutMs: number = START_TIMEOUT_MS,
): Promise<Buffer> {
  const runId = newId('run')
  const newConversationId = newId('conversation')
  const request: AgentPromptRequest = { ...prompt, runId, newConversationId, boxEnv }
  const body = JSON.stringify(request)
  const conversationId = prompt.new ? newConversationId : prompt.conversationId

  async function attempt(tunnel: AcquiredBox['tunnel'], signal: AbortSignal): Promise<Buffer> {
    const submitted = await requestAgent(
      { responseParser },
      { tunnel, signal },
      { method: 'POST', path: '/prompts', body, type: 'prompt.submitted', timeoutMs },
    )
    if (submitted.runId !== runId) throw createAgentProtocolError('The agent responded for a different run.')
    if (conversationId !== undefined && submitted.conversationId !== conversationId)
      throw createAgentProtocolError('The agent responded for a different conversation.')
    return submitted.json
  }

  try {
    return await repeatWhileUnreachable(tunnels, acquired, timeoutMs, attempt)
  } catch (error) {
    if (!isUnreachable(error)) throw error
    throw new ApiError(
      'box_unreachable',
      `The box did not respond in time. The prompt may have been accepted as ${runId}. Check with GET /prompts.`,
      { cause: error },
    )
  }
}
