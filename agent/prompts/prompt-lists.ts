// Responses that list runs, queued prompts and conversations.
import type { ConversationList, PromptList, QueuedPrompt } from '../../shared/api/prompts.ts'
import { toTimestamp } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { ConversationState } from './conversations/conversations.ts'
import type { QueueEntry } from './queue/queue.ts'
import type { RunInProgress } from './rules.ts'
import { toRun } from './runs/run-fields.ts'
import type { RunState } from './types.ts'

/** @param position in the queue of the box, from 1 */
export function toQueuedPrompt(entry: QueueEntry, position: number): QueuedPrompt {
  const { id, conversationId, provider, model, queuedAt, promptPreview } = entry
  return {
    id,
    conversationId,
    provider,
    model,
    position,
    queuedAt: toTimestamp(queuedAt),
    prompt: promptPreview,
  }
}

/** @param runs newest first. @param queue of the box, in order */
export function listPrompts(
  runs: readonly RunState[],
  queue: readonly QueueEntry[],
  isIncluded: (prompt: { conversationId: string }) => boolean,
): PromptList {
  const included = runs.filter(isIncluded)
  const active = included.find(({ status }) => status === 'running')
  const started = new Set(runs.map(({ id }) => id))
  return {
    ok: true,
    type: 'prompt.list',
    runs: included.slice(0, LIMITS.listedPrompts).map((run) => toRun(run)),
    active: active === undefined ? null : toRun(active),
    queued: queue
      .filter(({ id }) => !started.has(id))
      .map((entry, index) => ({ entry, position: index + 1 }))
      .filter(({ entry }) => isIncluded(entry))
      .map(({ entry, position }) => toQueuedPrompt(entry, position)),
  }
}

/** @param conversations most recently active first */
export function listConversations(
  conversations: readonly ConversationState[],
  situation: { inProgress: readonly RunInProgress[]; queue: readonly QueueEntry[]; limit: number },
): ConversationList {
  const { inProgress, limit } = situation
  const startedIds = new Set(inProgress.map(({ id }) => id))
  const waiting = situation.queue.filter(({ id }) => !startedIds.has(id))
  return {
    ok: true,
    type: 'prompt.conversations',
    conversations: conversations.slice(0, LIMITS.listedPrompts).map((conversation) => {
      const { id, provider, model, cwd, prompts, sessionId, lastRun, lastRunId } = conversation
      const queued = waiting.filter(({ conversationId }) => conversationId === id)
      return {
        id,
        provider,
        model,
        cwd,
        prompts,
        lastRunId,
        sessionId,
        queued: queued.length,
        running: inProgress.some(({ conversationId }) => conversationId === id),
        lastStatus: lastRun?.status ?? null,
        lastPrompt: lastRun?.promptPreview ?? queued[0]?.promptPreview ?? '',
        createdAt: toTimestamp(conversation.createdAt),
        updatedAt: toTimestamp(conversation.updatedAt),
      }
    }),
    running: inProgress.length,
    limit,
  }
}
