// Interrupts runs, and removes prompts from the queue.
import type { PromptsInterrupted } from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { PromptQueue } from './queue.ts'
import type { Prompts, Runs } from './types.ts'

const CAUSE = 'The run was interrupted by a request.'

export type InterruptDeps = {
  runs: Runs
  queue: PromptQueue
  dispatcher: Dispatcher
  changes: ChangeNotifier
  isInScope(scope: string | undefined): (prompt: { conversationId: string }) => boolean
  /** @throws ApiError not_found */
  assertConversation(id: string | undefined): void
  cleanUpAndSave(): Promise<void>
}

export function createInterrupts(deps: InterruptDeps): Pick<Prompts, 'interrupt' | 'interruptAll'> {
  const { runs, queue, dispatcher, changes, isInScope, assertConversation, cleanUpAndSave } = deps

  async function removeFromQueue(ids: readonly string[]): Promise<void> {
    // All entries are removed before the first await: none of them can start.
    const removals = ids.map((id) => queue.remove(id))
    changes.notify()
    await Promise.all(removals)
    if (ids.length > 0) await cleanUpAndSave()
  }
  /** null: the run did not start, or has been deleted. */
  async function interruptRun(id: string) {
    await dispatcher.waitForStart(id)
    const run = runs.get(id)
    if (run === undefined) return null
    return { id, conversationId: run.conversationId, ...(await runs.interrupt(id, CAUSE)) }
  }

  return {
    async interrupt(id) {
      const result = { ok: true, type: 'prompt.interrupted', id } as const
      if (queue.get(id) !== undefined && runs.get(id) === undefined && !dispatcher.isStarting(id)) {
        await removeFromQueue([id])
        return { ...result, wasRunning: false, signal: null, dequeued: true }
      }
      const interrupted = await interruptRun(id)
      if (interrupted === null)
        throw new ApiError('not_found', `Run ${id.slice(0, 64)} not found. Check the id.`)
      const { wasRunning, signal } = interrupted
      return { ...result, wasRunning, signal, dequeued: false }
    },
    async interruptAll(scope): Promise<PromptsInterrupted> {
      assertConversation(scope)
      const dequeued = queue
        .entries()
        .filter(isInScope(scope))
        .map(({ id }) => id)
        .filter((id) => !dispatcher.isStarting(id))
      // Oldest first.
      const targets = dispatcher.inProgress().filter(isInScope(scope)).reverse()
      const removed = removeFromQueue(dequeued)
      const results = await Promise.all(targets.map(({ id }) => interruptRun(id)))
      await removed
      const interrupted = results.filter((result) => result !== null).filter(({ wasRunning }) => wasRunning)
      const [first] = interrupted
      return {
        ...{ ok: true, type: 'prompt.interrupted', dequeued },
        ...{ id: first?.id ?? null, wasRunning: first !== undefined, signal: first?.signal ?? null },
        interrupted: interrupted.map(({ id, conversationId, signal }) => ({ id, conversationId, signal })),
      }
    },
  }
}
