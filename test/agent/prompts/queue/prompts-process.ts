// Prompts over real runs in a process of their own, for tests that kill the agent. Started with an IPC channel: each message
// is a prompt to submit; the reply is the answer, or the error as text. The first message of the process is 'ready'.
import type { AgentPromptRequest } from '../../../../shared/api/prompts.ts'
import { openRealPrompts } from './real-prompts.ts'

const { prompts } = await openRealPrompts({ teardown: () => undefined }, process.env.HOME ?? '')

process.on('message', (request: AgentPromptRequest) => {
  prompts.submit(request).then(
    (answer) => process.send?.({ runId: request.runId, type: answer.type }),
    (error: unknown) => process.send?.({ runId: request.runId, type: String(error) }),
  )
})
process.send?.('ready')
