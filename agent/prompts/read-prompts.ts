// Responses about prompts: lists, the status and the events. A prompt in the queue has no run yet.
import { ApiError } from '../../shared/errors.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import { assertConversation, type Conversations } from './conversations/conversations.ts'
import { createPoll } from './poll.ts'
import { listConversations, listPrompts } from './prompt-lists.ts'
import type { Dispatcher } from './queue/dispatcher.ts'
import type { PromptQueue } from './queue/queue.ts'
import { isInScope } from './rules.ts'
import type { Prompts, Runs } from './types.ts'

export type PromptReadsDeps = {
  runs: Runs
  queue: PromptQueue
  conversations: Conversations
  dispatcher: Dispatcher
  changes: ChangeNotifier
  /** The most runs in progress. */
  runLimit: number
  /** Aborts when the agent stops. */
  closing: AbortSignal
}

export type PromptReads = Pick<Prompts, 'list' | 'listConversations' | 'readStatus' | 'readEvents' | 'poll'>

export function createPromptReads(deps: PromptReadsDeps): PromptReads {
  const { runs, queue, conversations, dispatcher, changes, runLimit, closing } = deps
  const poll = createPoll({
    runs,
    changes,
    isPending: (id) => dispatcher.isPending(id),
    countActive: (conversationId) => dispatcher.countActive(conversationId),
    closing,
  })
  return {
    list(conversationId) {
      assertConversation(conversations, conversationId)
      return listPrompts(runs.list(), queue.entries(), isInScope(conversationId))
    },
    listConversations: () =>
      listConversations(conversations.list(), {
        inProgress: dispatcher.inProgress(),
        queue: queue.entries(),
        limit: runLimit,
      }),
    async readStatus(id) {
      if (runs.get(id) === undefined) assertNotPending(id, queue, dispatcher)
      return runs.readStatus(id)
    },
    async readEvents(id, { after, limit, waitMs, signal }) {
      const deadline = performance.now() + waitMs
      for (;;) {
        const seen = changes.version()
        const remainingMs = Math.max(0, deadline - performance.now())
        if (runs.get(id) !== undefined || !dispatcher.isPending(id))
          return runs.readEvents(id, { after, limit, waitMs: remainingMs, signal })
        if (remainingMs === 0 || signal.aborted || closing.aborted)
          return { ok: true, type: 'prompt.events', run: null, events: [], next: after, finished: false }
        await changes.wait(seen, remainingMs, [signal, closing])
      }
    },
    async poll(request, signal) {
      assertConversation(conversations, request.conversation)
      return poll(request, signal)
    },
  }
}

/** @throws ApiError not_found when the run of the prompt does not exist yet */
function assertNotPending(id: string, queue: PromptQueue, dispatcher: Dispatcher): void {
  const position = queue.entries().findIndex((entry) => entry.id === id)
  if (position >= 0)
    throw new ApiError(
      'not_found',
      `Prompt ${id} is in the queue of the box, at position ${position + 1}. Its run has not started.`,
    )
  if (dispatcher.isStarting(id))
    throw new ApiError(
      'not_found',
      `Run ${id} is being started. Until its coding agent is found or installed, it has no status.`,
    )
}
