// Interrupts runs, and removes prompts from the queue.
import type { PromptInterrupted, PromptsInterrupted } from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import type { ConversationCleanup } from './conversations/conversation-cleanup.ts'
import { assertConversation, type Conversations } from './conversations/conversations.ts'
import type { Dispatcher } from './queue/dispatcher.ts'
import type { PromptQueue } from './queue/queue.ts'
import { isInScope } from './rules.ts'
import type { Prompts, Runs } from './types.ts'

const CAUSE = 'The run was interrupted by a request.'

export type InterruptDeps = {
  runs: Runs
  queue: PromptQueue
  dispatcher: Dispatcher
  conversations: Conversations
  cleanup: ConversationCleanup
  changes: ChangeNotifier
}

export function createInterrupts(deps: InterruptDeps): Pick<Prompts, 'interrupt' | 'interruptAll'> {
  const { runs, queue, dispatcher, conversations, cleanup, changes } = deps

  async function removeFromQueue(ids: readonly string[]): Promise<void> {
    // All entries are removed before the first await: none of them can start.
    const removals = ids.map((id) => queue.remove(id))
    changes.notify()
    await Promise.all(removals)
    if (ids.length > 0) await cleanup.cleanUpAndSave()
  }
  type Interrupted = Pick<PromptInterrupted, 'id' | 'wasRunning' | 'signal' | 'dequeued'> & {
    conversationId: string
  }
  /** Returns null when the run did not start, or has been deleted. */
  async function interruptPrompt(id: string): Promise<Interrupted | null> {
    const wasStarting = dispatcher.isStarting(id)
    await dispatcher.interruptStart(id, CAUSE)
    const entry = queue.get(id)
    const run = runs.get(id)
    if (run === undefined) {
      if (entry === undefined) return null
      await removeFromQueue([id])
      const { conversationId } = entry
      return { id, conversationId, wasRunning: false, signal: null, dequeued: true }
    }
    const { wasRunning, signal } = await runs.interrupt(id, CAUSE)
    const hadNoProcess = wasStarting && run.status === 'interrupted' && run.pid === null
    const { conversationId } = run
    return { id, conversationId, wasRunning: wasRunning || hadNoProcess, signal, dequeued: false }
  }

  return {
    async interrupt(id) {
      const interrupted = await interruptPrompt(id)
      if (interrupted === null)
        throw new ApiError('not_found', `Run ${id.slice(0, 64)} not found. Check the id.`)
      const { conversationId: _, ...fields } = interrupted
      return { ok: true, type: 'prompt.interrupted', ...fields }
    },
    async interruptAll(scope): Promise<PromptsInterrupted> {
      assertConversation(conversations, scope)
      const dequeued = dispatcher
        .waiting()
        .filter(isInScope(scope))
        .map(({ id }) => id)
      // Oldest first.
      const targets = dispatcher.inProgress().filter(isInScope(scope)).reverse()
      const removed = removeFromQueue(dequeued)
      const results = await Promise.all(targets.map(({ id }) => interruptPrompt(id)))
      await removed
      const known = results.filter((result) => result !== null)
      const interrupted = known.filter(({ wasRunning }) => wasRunning)
      // Prompts whose start has failed: the dispatcher would have repeated the start.
      const failed = known.filter((result) => result.dequeued).map(({ id }) => id)
      const [first] = interrupted
      return {
        ok: true,
        type: 'prompt.interrupted',
        dequeued: [...dequeued, ...failed],
        id: first?.id ?? null,
        wasRunning: first !== undefined,
        signal: first?.signal ?? null,
        interrupted: interrupted.map(({ id, conversationId, signal }) => ({ id, conversationId, signal })),
      }
    },
  }
}
