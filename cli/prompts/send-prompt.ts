// Sends a prompt to a box: completes the request from the options, and adds what to do to errors.
import type {
  Conversation,
  PromptQueued,
  PromptRequest,
  PromptStarted,
  ProviderName,
  ReasoningEffort,
} from '../../shared/api/prompts.ts'
import type { EdgeClient } from '../connection/client.ts'
import { addHints } from '../connection/refusals.ts'
import { invalidDataError } from '../connection/server-data.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { type Progress, showStatus } from '../output/status-line.ts'
import { isNotRunning } from '../processes/list-processes.ts'
import { waitForState } from '../wait/wait-for-box.ts'
import { checkRun } from './check-run.ts'
import { getDefaultProvider } from './default-provider.ts'
import { findConversation, isWholeConversationId, loadConversations } from './find-run.ts'

export type RequestOptions = {
  provider?: ProviderName
  model?: string
  effort?: ReasoningEffort
  cwd?: string
  continue?: boolean
  /** An id or a prefix of it. */
  conversation?: string
  new?: boolean
  queue?: boolean
  auto?: boolean
}

/** A start takes longer while the box wakes, or OpenCode or pi is installed. */
const SLOW_START_MS = 2000

/** Wakes a suspended box. @throws CliError when the prompt is refused */
export async function sendPrompt(
  session: Session,
  edge: EdgeClient,
  prompt: string,
  options: RequestOptions,
  progress: Progress,
): Promise<PromptStarted | PromptQueued> {
  const { model, effort, cwd, queue, auto } = options
  const request: PromptRequest = {
    ...(await selectConversation(session, edge, options)),
    prompt,
    ...(model !== undefined && { model }),
    ...(effort !== undefined && { reasoningEffort: effort }),
    ...(cwd !== undefined && { cwd }),
    ...(options.new && { new: true }),
    ...(queue && { queue: true }),
    ...(auto && { auto: true }),
  }
  const response = await showStatus(progress, async (update) => {
    const timer = setTimeout(() => update(getStartStatus(edge.boxName, request)), SLOW_START_MS)
    const started = edge.requestJson<PromptStarted | PromptQueued>('POST', '/prompts', request)
    return addHints(started.catch(removeAdvice), getHints(edge.boxName, request)).finally(() =>
      clearTimeout(timer),
    )
  })
  if (response.type === 'prompt.queued') {
    if (typeof response.queued?.id !== 'string') throw invalidDataError('a queued prompt without an id')
  } else checkRun(response.run)
  return response
}

const getStartStatus = (box: string, { provider }: PromptRequest): string =>
  provider === 'opencode' || provider === 'pi'
    ? `waiting for ${box} to start ${provider}, and to install it if it is missing`
    : `waiting for ${box} to start ${provider}`

/** Without --provider, the request has the provider of the conversation, so that -c continues whatever was used last. */
async function selectConversation(
  session: Session,
  edge: EdgeClient,
  options: RequestOptions,
): Promise<Pick<PromptRequest, 'provider' | 'continue' | 'conversationId'>> {
  const { conversation: typed, provider } = options
  if (typed !== undefined) {
    if (provider !== undefined && isWholeConversationId(typed)) return { provider, conversationId: typed }
    const conversations = await loadConversationsAwake(session, edge)
    // The list has the most recently active conversations only.
    if (isWholeConversationId(typed) && !conversations.some(({ id }) => id === typed))
      return { provider: getDefaultProvider(process.env), conversationId: typed }
    const found = findConversation(conversations, edge.boxName, typed)
    return { provider: provider ?? found.provider, conversationId: found.id }
  }
  if (!options.continue) return { provider: provider ?? getDefaultProvider(process.env) }
  if (provider !== undefined) return { provider, continue: true }
  const newest = (await loadConversationsAwake(session, edge)).find(({ sessionId }) => sessionId !== null)
  if (newest !== undefined) return { provider: newest.provider, conversationId: newest.id }
  const message = `There is no conversation on ${edge.boxName} to continue. Send the prompt without -c.`
  throw new CliError(EXIT.failed, message, { code: 'no_session_to_continue' })
}

/** Most recently active first. Wakes the box, as the prompt does: only the box knows its conversations. */
async function loadConversationsAwake(session: Session, edge: EdgeClient): Promise<Conversation[]> {
  try {
    return (await loadConversations(edge)).conversations
  } catch (error) {
    if (!isNotRunning(error) || edge.boxId === null) throw error
    const { client } = session
    await client.request('POST', `/boxes/${edge.boxId}/wake`)
    await waitForState(session, (await client.getBoxDetail(edge.boxId)).box, 'running', 'terminal')
    return (await loadConversations(edge)).conversations
  }
}

const PACKAGES: Record<ProviderName, string> = {
  claude: '@anthropic-ai/claude-code',
  codex: '@openai/codex',
  opencode: 'opencode-ai',
  pi: '@earendil-works/pi-coding-agent',
}

/** Their messages recommend fields of the request. The hints recommend options and commands instead. */
const CODES_WITH_FIELDS = new Set([
  'prompt_in_progress',
  'prompt_limit_reached',
  'no_session_to_continue',
  'provider_mismatch',
])

/** Keeps the first sentence of the message: the problem. */
function removeAdvice(error: unknown): never {
  if (!(error instanceof CliError) || error.code === null || !CODES_WITH_FIELDS.has(error.code)) throw error
  const [problem = ''] = error.message.split(/(?<=\.) /, 1)
  throw new CliError(error.exitCode, problem, { code: error.code, fields: error.fields, cause: error })
}

function getHints(box: string, { provider, continue: isContinued, conversationId, queue }: PromptRequest) {
  const isOld = isContinued === true || conversationId !== undefined
  const other = isOld ? '' : ' --new starts a conversation beside it.'
  const wait = queue ? '' : '--queue waits for a run. '
  return {
    prompt_in_progress: `--queue waits for it.${other} \`box interrupt ${box}\` interrupts it.`,
    prompt_limit_reached: `${wait}\`box prompts ${box}\` lists the runs, and \`box interrupt ${box} RUN\` interrupts one.`,
    provider_not_signed_in: `\`box ssh ${box}\` opens a terminal on the box.`,
    provider_not_installed: (message: string) =>
      // The same command would fail in the same way.
      message.includes('NODE_EXTRA_CA_CERTS')
        ? null
        : `From this machine: \`box exec ${box} npm install -g ${PACKAGES[provider]}\`.`,
    no_session_to_continue: 'Without -c, the prompt starts a conversation.',
    provider_mismatch: `\`box conversations ${box}\` lists the providers. Omit -p to use that of the conversation.`,
  }
}
