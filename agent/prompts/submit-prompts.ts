// Accepts prompts: each one starts a run, waits in the queue, or is refused.
import type {
  AgentPromptRequest,
  PromptQueued,
  PromptStarted,
  ProviderName,
  QueuedPrompt,
} from '../../shared/api/prompts.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { assertSupported } from '../../shared/prompt-combinations.ts'
import { toStartError } from '../exec/start-error.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import type { ConversationCleanup } from './conversations/conversation-cleanup.ts'
import { type ConversationState, type Conversations, toConversation } from './conversations/conversations.ts'
import { toQueuedPrompt } from './prompt-lists.ts'
import { boundedText } from './providers/json-fields.ts'
import type { Provider } from './providers/types.ts'
import type { NewRun } from './queue/conversation-runs.ts'
import type { Dispatcher } from './queue/dispatcher.ts'
import type { PromptQueue } from './queue/queue.ts'
import { type Admission, admit, type PromptLimits, selectConversation } from './rules.ts'
import { toRun } from './runs/run-fields.ts'
import type { Runs } from './types.ts'

export type SubmitDeps = {
  home: string
  runs: Pick<Runs, 'get'>
  queue: PromptQueue
  conversations: Conversations
  dispatcher: Dispatcher
  cleanup: ConversationCleanup
  changes: ChangeNotifier
  providers: Readonly<Record<ProviderName, Pick<Provider, 'defaultAuto'>>>
  clock: Clock
  limits: PromptLimits
}

type Answer = PromptStarted | PromptQueued

/** Answers that are repeated unchanged. A repeated request arrives soon after the first one. */
const MAX_ANSWERS = 200

export class PromptSubmissions {
  readonly #deps: SubmitDeps
  readonly #answers = new Map<string, Promise<Answer>>()

  constructor(deps: SubmitDeps) {
    this.#deps = deps
  }

  /** Idempotent by runId. @throws ApiError of spec §7.2 */
  submit(request: AgentPromptRequest): Promise<Answer> {
    const { runId } = request
    const answer = this.#answers.get(runId) ?? this.#accept(request)
    this.#answers.set(runId, answer)
    // A refused request is decided again.
    answer.catch(() => this.#answers.delete(runId))
    for (const id of [...this.#answers.keys()].slice(0, -MAX_ANSWERS)) this.#answers.delete(id)
    return answer
  }

  /** Decides and reserves before the first await: concurrent requests see each other. */
  async #accept(request: AgentPromptRequest): Promise<Answer> {
    const known = this.#findKnown(request.runId)
    if (known !== null) return known
    if (Buffer.byteLength(request.prompt) > LIMITS.promptBytes)
      throw new ApiError(
        'payload_too_large',
        'prompt must be at most 512 KiB. Store the text in a file on the box, and name the file in the prompt.',
      )
    const { run, admission } = this.#decide(request)
    return admission.action === 'start' ? this.#start(run) : this.#enqueue(run, admission.behind)
  }

  /** The answer to a request that an earlier agent has accepted. */
  #findKnown(runId: string): Answer | null {
    const { runs, queue, dispatcher } = this.#deps
    const run = runs.get(runId)
    if (run !== undefined) return { ok: true, type: 'prompt.started', run: toRun(run) }
    const position = queue.entries().findIndex(({ id }) => id === runId)
    const queued = queue.entries()[position]
    if (queued === undefined) return null
    const { conversationId } = queued
    const behind = dispatcher.inProgress().find((other) => other.conversationId === conversationId)
    return this.#toQueuedAnswer(toQueuedPrompt(queued, position + 1), behind?.id ?? null)
  }

  /** @throws ApiError when the prompt is refused */
  #decide(request: AgentPromptRequest): { run: NewRun; admission: Admission } {
    const { home, conversations, dispatcher, providers, limits } = this.#deps
    const { provider, prompt } = request
    const situation = {
      home,
      conversations: conversations.list(),
      inProgress: dispatcher.inProgress(),
      queue: dispatcher.waiting(),
      limits,
    }
    const conversation = selectConversation(request, situation)
    const model = request.model ?? (conversation === null ? null : this.#findModel(conversation))
    const auto = request.auto ?? providers[provider].defaultAuto
    assertSupported({ provider, model: model ?? undefined, auto })
    const run = {
      id: request.runId,
      conversationId: conversation?.id ?? request.newConversationId,
      provider,
      model,
      reasoningEffort: request.reasoningEffort ?? null,
      auto,
      prompt,
      boxEnv: request.boxEnv ?? {},
      cwd: conversation?.cwd ?? (request.cwd || '~'),
    }
    return { run, admission: admit(request, conversation, situation) }
  }

  /** The model of the newest prompt of the conversation. */
  #findModel({ id, model }: ConversationState): string | null {
    const queued = this.#deps.queue.entries().findLast(({ conversationId }) => conversationId === id)
    return queued?.model ?? model
  }

  async #start(run: NewRun): Promise<PromptStarted> {
    const { conversations, dispatcher, cleanup, clock } = this.#deps
    if (conversations.get(run.conversationId) === undefined)
      conversations.add(toConversation(run), clock.now())
    try {
      const state = await dispatcher.start(run)
      return { ok: true, type: 'prompt.started', run: toRun(state) }
    } finally {
      await cleanup.cleanUpAndSave()
    }
  }

  /** @param behind the run that the prompt waits for; null: none */
  async #enqueue(run: NewRun, behind: string | null): Promise<PromptQueued> {
    const { queue, conversations, dispatcher, cleanup, changes, clock } = this.#deps
    const { prompt, boxEnv, ...fields } = run
    const queuedAt = clock.now()
    conversations.add(toConversation(run), queuedAt)
    const promptPreview = boundedText(prompt, LIMITS.promptPreviewChars)
    const { entry, stored } = queue.add({ ...fields, promptPreview, queuedAt }, { prompt, boxEnv })
    const position = queue.entries().length
    changes.notify()
    try {
      await stored
    } catch (error) {
      throw toStartError(error)
    } finally {
      await cleanup.cleanUpAndSave()
    }
    dispatcher.dispatch()
    return this.#toQueuedAnswer(toQueuedPrompt(entry, position), behind)
  }

  #toQueuedAnswer(queued: QueuedPrompt, behind: string | null): PromptQueued {
    const active = behind === null ? undefined : this.#deps.runs.get(behind)
    return {
      ok: true,
      type: 'prompt.queued',
      conversationId: queued.conversationId,
      queued,
      active: active === undefined ? null : toRun(active),
    }
  }
}
