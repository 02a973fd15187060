// The rules of spec §4.16: decides what a request means. Pure.

import type { PromptRequest, ProviderName } from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import { formatCount } from '../../shared/format-count.ts'
import { resolveCwd } from '../exec/working-directory.ts'

export type ConversationFacts = {
  id: string
  provider: ProviderName
  /** The working directory as given; ~ by default. */
  cwd: string
  sessionId: string | null
}
export type RunInProgress = { id: string; conversationId: string; provider: ProviderName }
export type QueuedFacts = { id: string; conversationId: string }
export type PromptLimits = { runs: number; conversations: number; queued: number }

export type Situation<T extends ConversationFacts = ConversationFacts> = {
  home: string
  /** Most recently active first. */
  conversations: readonly T[]
  /** Newest first. Includes runs that are starting. */
  inProgress: readonly RunInProgress[]
  /** The queued prompts in order, without those that are starting. */
  queue: readonly QueuedFacts[]
  limits: PromptLimits
}

export type Choice = Pick<PromptRequest, 'provider' | 'cwd' | 'new' | 'conversationId' | 'continue' | 'queue'>
export type Admission = { action: 'start' } | { action: 'queue'; behind: string | null }

/** Longer paths are refused by the kernel. */
const MAX_CWD_BYTES = 4095

/**
 * Returns the conversation that the prompt continues; null: the prompt starts a conversation.
 * @throws ApiError invalid_request, invalid_path, not_found, provider_mismatch, no_session_to_continue
 */
export function selectConversation<T extends ConversationFacts>(
  request: Choice,
  situation: Situation<T>,
): T | null {
  const choices = [request.new === true, request.conversationId !== undefined, request.continue === true]
  if (choices.filter(Boolean).length > 1)
    throw new ApiError(
      'invalid_request',
      'new, conversationId and continue exclude each other. Send at most one of them.',
    )
  if (request.cwd !== undefined && Buffer.byteLength(request.cwd) > MAX_CWD_BYTES)
    throw new ApiError('invalid_path', `cwd must be at most ${MAX_CWD_BYTES} bytes`)
  const conversation = findConversation(request, situation)
  if (conversation !== null && request.cwd !== undefined) {
    const [given, kept] = [request.cwd, conversation.cwd].map((cwd) => resolveCwd(situation.home, cwd))
    if (given !== kept)
      throw new ApiError(
        'invalid_request',
        `cwd must be that of conversation ${conversation.id}: ${conversation.cwd}. Omit cwd, or send new.`,
      )
  }
  return conversation
}

function findConversation<T extends ConversationFacts>(
  request: Choice,
  { conversations, inProgress, queue }: Situation<T>,
): T | null {
  const { provider, conversationId } = request
  if (conversationId !== undefined) {
    const conversation = conversations.find(({ id }) => id === conversationId)
    if (conversation === undefined) throw unknownConversation(conversationId)
    if (conversation.provider !== provider)
      throw new ApiError(
        'provider_mismatch',
        `Conversation ${conversation.id} belongs to ${conversation.provider}. Send provider ${conversation.provider}, or omit conversationId.`,
      )
    return conversation
  }
  const isWaitedFor = ({ id }: ConversationFacts) =>
    [...inProgress, ...queue].some((run) => run.conversationId === id)
  if (request.continue === true) {
    // A run in progress may not have a session yet: it is not skipped for an older conversation.
    const conversation = conversations.find(
      (candidate) =>
        candidate.provider === provider && (candidate.sessionId !== null || isWaitedFor(candidate)),
    )
    if (conversation !== undefined) return conversation
    throw new ApiError(
      'no_session_to_continue',
      `${provider} has no session on this box that could be continued. Omit continue to start a conversation.`,
    )
  }
  if (request.new === true || request.queue !== true) return null
  const followed = inProgress.find((run) => run.provider === provider)
  return conversations.find(({ id }) => id === followed?.conversationId) ?? null
}

/**
 * @param conversation from selectConversation()
 * @throws ApiError prompt_in_progress, prompt_limit_reached
 */
export function admit(
  request: Choice,
  conversation: ConversationFacts | null,
  { conversations, inProgress, queue, limits }: Situation,
): Admission {
  const enqueue = (behind: string | null): Admission => {
    if (queue.length < limits.queued) return { action: 'queue', behind }
    throw new ApiError(
      'prompt_limit_reached',
      `${formatCount(limits.queued, 'prompt waits', 'prompts wait')} in the queue of the box, the most it holds. Wait until one has started, or interrupt one.`,
    )
  }
  const hasPrompt = ({ id }: ConversationFacts) =>
    [...inProgress, ...queue].some(({ conversationId }) => conversationId === id)
  if (conversation === null) {
    const [newest] = inProgress
    if (request.new !== true && request.queue !== true && newest !== undefined)
      throw new ApiError(
        'prompt_in_progress',
        `Run ${newest.id} of ${newest.provider} is in progress. Wait for it, interrupt it, or send queue or new.`,
      )
    if (conversations.length >= limits.conversations && conversations.every(hasPrompt))
      throw new ApiError(
        'prompt_limit_reached',
        `All ${conversations.length} conversations of the box have a run in progress or a queued prompt. Wait for one, or send conversationId and queue.`,
      )
  } else {
    const { id } = conversation
    const current = inProgress.find(({ conversationId }) => conversationId === id)
    const blocking = current ?? queue.find(({ conversationId }) => conversationId === id)
    if (blocking !== undefined) {
      if (request.queue === true) return enqueue(current?.id ?? null)
      throw new ApiError(
        'prompt_in_progress',
        `${current === undefined ? `Prompt ${blocking.id} is queued` : `Run ${current.id} is in progress`} in conversation ${id}. Wait for it, interrupt it, or send queue or new.`,
      )
    }
  }
  if (inProgress.length < limits.runs) return { action: 'start' }
  const oldest = inProgress.at(-1)
  if (request.queue === true) return enqueue(oldest?.id ?? null)
  throw new ApiError(
    'prompt_limit_reached',
    `The box has ${formatCount(inProgress.length, 'run')} in progress, its limit. Wait for one, such as ${oldest?.id}, interrupt one, or send queue.`,
  )
}

/** The queued prompt that starts next: the oldest whose conversation has no run in progress; null: none can start. */
export function selectNext<T extends QueuedFacts>(
  queue: readonly T[],
  inProgress: readonly Pick<RunInProgress, 'conversationId'>[],
): T | null {
  const busy = new Set(inProgress.map(({ conversationId }) => conversationId))
  return queue.find(({ conversationId }) => !busy.has(conversationId)) ?? null
}

/** The id comes from the client and may be long. */
export const unknownConversation = (id: string): ApiError =>
  new ApiError(
    'not_found',
    `Conversation ${id.slice(0, 64)} not found. GET /prompts/conversations lists the conversations of the box.`,
  )

/** Selects the prompts of a conversation. @param conversationId undefined: all prompts of the box */
export const isInScope =
  (conversationId: string | undefined) =>
  (prompt: { conversationId: string }): boolean =>
    conversationId === undefined || prompt.conversationId === conversationId
