// Prompts of a box: accepts, lists and interrupts them. Connects the rules, the conversations, the queue and the runs.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type {
  AgentPromptRequest,
  PromptQueued,
  PromptStarted,
  ProviderName,
} from '../../shared/api/prompts.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { assertSupported } from '../../shared/prompt-combinations.ts'
import { toStartError } from '../exec/start-error.ts'
import type { ActivityTracker } from '../vitals/activity-tracker.ts'
import { createChangeNotifier } from './change-notifier.ts'
import { type ConversationState, openConversations } from './conversations.ts'
import { createInterrupts } from './interrupt-prompts.ts'
import { createPoll } from './poll.ts'
import { listConversations, listPrompts, toQueuedPrompt } from './prompt-lists.ts'
import { boundedText } from './providers/json-fields.ts'
import type { Provider } from './providers/types.ts'
import { createDispatcher, type NewRun } from './queue/dispatcher.ts'
import { openQueue } from './queue/queue.ts'
import { admit, type PromptLimits, selectConversation, unknownConversation } from './rules.ts'
import { toRun } from './runs/run-fields.ts'
import type { Prompts, Runs } from './types.ts'

export type PromptsOptions = {
  /** State directory of prompts, absolute. Created when missing. */
  dir: string
  home: string
  /** Closed by the caller, after the prompts. */
  runs: Runs
  providers: Readonly<Record<ProviderName, Pick<Provider, 'defaultAuto'>>>
  clock: Clock
  log: FastifyBaseLogger
  /** A queued prompt keeps the box active. A run does so by its process. */
  activity: Pick<ActivityTracker, 'watch'>
  limits: PromptLimits
}

/** Answers that are repeated unchanged. A repeated request arrives soon after the first one. */
const MAX_ANSWERS = 200

/** Restores the conversations and the queue, and starts the queued prompts that can start. */
export async function createPrompts(options: PromptsOptions): Promise<Prompts> {
  const { dir, home, runs, providers, clock, log, limits } = options
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const queue = await openQueue(join(dir, 'queue'), log)
  const conversations = openConversations(join(dir, 'conversations.json'), runs, log)
  const changes = createChangeNotifier()
  const dispatcher = createDispatcher({ runs, queue, conversations, changes, limit: limits.runs, log })
  const answers = new Map<string, Promise<PromptStarted | PromptQueued>>()
  const closing = new AbortController()

  const isInScope = (scope: string | undefined) => (prompt: { conversationId: string }) =>
    scope === undefined || prompt.conversationId === scope
  const isPending = (id: string) => queue.get(id) !== undefined || dispatcher.isStarting(id)
  const countActive = (scope: string | undefined) => {
    const prompts = [...dispatcher.inProgress(), ...queue.entries()].filter(isInScope(scope))
    return new Set(prompts.map(({ id }) => id)).size
  }
  /** @throws ApiError not_found */
  const assertConversation = (id: string | undefined) => {
    if (id !== undefined && conversations.get(id) === undefined) throw unknownConversation(id)
  }
  let removals = Promise.resolve()
  /**
   * Deletes the least recently active conversations beyond the limit, with their runs, and those that never had a run. Runs
   * that are left when the agent is killed get their conversation again, which is then deleted.
   */
  async function cleanUpAndSave(): Promise<void> {
    const all = conversations.list()
    const idle = all.filter(({ id }) => countActive(id) === 0)
    const excess = Math.max(0, all.length - limits.conversations)
    const leastRecent = idle.slice(Math.max(0, idle.length - excess))
    const removed = new Set(
      [...leastRecent, ...idle.filter(({ prompts }) => prompts === 0)].map(({ id }) => id),
    )
    for (const id of removed) conversations.remove(id)
    if (removed.size > 0) {
      const ids = runs.list().flatMap((run) => (removed.has(run.conversationId) ? [run.id] : []))
      removals = Promise.all([removals, ...ids.map((id) => runs.remove(id))]).then(
        () => undefined,
        (err: unknown) => log.error({ err }, 'failed to delete the runs of a conversation'),
      )
    }
    await conversations.save()
  }

  async function restore(): Promise<void> {
    for (const entry of queue.entries()) {
      // The agent was killed after the start.
      if (runs.get(entry.id) !== undefined) await queue.remove(entry.id)
      else if (conversations.get(entry.conversationId) === undefined)
        conversations.add(toConversation(entry), entry.queuedAt)
    }
    await cleanUpAndSave()
  }

  async function startNow(run: NewRun): Promise<PromptStarted> {
    if (conversations.get(run.conversationId) === undefined)
      conversations.add(toConversation(run), clock.now())
    try {
      const state = await dispatcher.start(run)
      return { ok: true, type: 'prompt.started', run: toRun(state) }
    } finally {
      await cleanUpAndSave()
    }
  }
  async function enqueue(run: NewRun, behind: string | null): Promise<PromptQueued> {
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
      await cleanUpAndSave()
    }
    dispatcher.dispatch()
    return toQueuedAnswer(toQueuedPrompt(entry, position), behind)
  }
  const toQueuedAnswer = (queued: PromptQueued['queued'], behind: string | null): PromptQueued => {
    const active = behind === null ? undefined : runs.get(behind)
    const { conversationId } = queued
    return {
      ...{ ok: true, type: 'prompt.queued', conversationId, queued },
      active: active === undefined ? null : toRun(active),
    }
  }

  const findModel = ({ id, model }: ConversationState): string | null =>
    queue.entries().findLast(({ conversationId }) => conversationId === id)?.model ?? model

  /** Decides and reserves before the first await: concurrent requests see each other. */
  async function accept(request: AgentPromptRequest): Promise<PromptStarted | PromptQueued> {
    const { runId, provider, prompt, boxEnv = {} } = request
    const known = runs.get(runId)
    if (known !== undefined) return { ok: true, type: 'prompt.started', run: toRun(known) }
    const inProgress = dispatcher.inProgress()
    // Accepted by an earlier agent.
    const position = queue.entries().findIndex(({ id }) => id === runId)
    const queued = queue.entries()[position]
    if (queued !== undefined) {
      const behind = inProgress.find(({ conversationId }) => conversationId === queued.conversationId)
      return toQueuedAnswer(toQueuedPrompt(queued, position + 1), behind?.id ?? null)
    }
    if (Buffer.byteLength(prompt) > LIMITS.promptBytes)
      throw new ApiError(
        'payload_too_large',
        'prompt must be at most 512 KiB. Store the text in a file on the box, and name the file in the prompt.',
      )
    const waiting = queue.entries().filter(({ id }) => !dispatcher.isStarting(id))
    const situation = { home, conversations: conversations.list(), inProgress, queue: waiting, limits }
    const conversation = selectConversation(request, situation)
    const model = request.model ?? (conversation === null ? null : findModel(conversation))
    const auto = request.auto ?? providers[provider].defaultAuto
    const reasoningEffort = request.reasoningEffort ?? null
    assertSupported({ provider, model: model ?? undefined, auto })
    const admission = admit(request, conversation, situation)
    const run: NewRun = {
      ...{ id: runId, conversationId: conversation?.id ?? request.newConversationId },
      ...{ provider, model, reasoningEffort, auto, prompt, boxEnv },
      cwd: conversation?.cwd ?? (request.cwd || '~'),
    }
    return admission.action === 'start' ? startNow(run) : enqueue(run, admission.behind)
  }

  await restore()
  const poll = createPoll({ runs, changes, isPending, countActive, closing: closing.signal })
  const unwatch = options.activity.watch(() => queue.entries().length > 0)
  dispatcher.dispatch()

  return {
    submit(request) {
      const { runId } = request
      const answer = answers.get(runId) ?? accept(request)
      answers.set(runId, answer)
      // A refused request is decided again.
      answer.catch(() => answers.delete(runId))
      for (const id of [...answers.keys()].slice(0, -MAX_ANSWERS)) answers.delete(id)
      return answer
    },
    list(conversationId) {
      assertConversation(conversationId)
      return listPrompts(runs.list(), queue.entries(), isInScope(conversationId))
    },
    listConversations: () =>
      listConversations(conversations.list(), {
        inProgress: dispatcher.inProgress(),
        queue: queue.entries(),
        limit: limits.runs,
      }),
    async readStatus(id) {
      const position = queue.entries().findIndex((entry) => entry.id === id)
      if (position >= 0 && runs.get(id) === undefined)
        throw new ApiError(
          'not_found',
          `Prompt ${id} is in the queue of the box, at position ${position + 1}. Its run has not started.`,
        )
      if (dispatcher.isStarting(id) && runs.get(id) === undefined)
        throw new ApiError(
          'not_found',
          `Run ${id} is being started. Until its coding agent is found or installed, it has no status.`,
        )
      return runs.readStatus(id)
    },
    async readEvents(id, { after, limit, waitMs, signal }) {
      const deadline = performance.now() + waitMs
      for (;;) {
        const seen = changes.version()
        const remainingMs = Math.max(0, deadline - performance.now())
        if (runs.get(id) !== undefined || !isPending(id))
          return runs.readEvents(id, { after, limit, waitMs: remainingMs, signal })
        if (remainingMs === 0 || signal.aborted || closing.signal.aborted)
          return { ok: true, type: 'prompt.events', run: null, events: [], next: after, finished: false }
        await changes.wait(seen, remainingMs, [signal, closing.signal])
      }
    },
    async poll(request, signal) {
      assertConversation(request.conversation)
      return poll(request, signal)
    },
    ...createInterrupts({ runs, queue, dispatcher, changes, isInScope, assertConversation, cleanUpAndSave }),
    async expectStop() {
      dispatcher.stop()
      runs.expectStop()
      for (;;) {
        const seen = changes.version()
        if (dispatcher.inProgress().length === 0 || closing.signal.aborted) return
        await changes.wait(seen, null, [closing.signal])
      }
    },
    async close() {
      dispatcher.stop()
      closing.abort()
      unwatch()
      await dispatcher.close()
      await removals
      await conversations.save()
    },
  }
}

const toConversation = ({ conversationId, provider, model, cwd }: Omit<NewRun, 'prompt' | 'boxEnv'>) => ({
  id: conversationId,
  provider,
  model,
  cwd,
})
