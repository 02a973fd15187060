// Prompts of a box: accepts, lists and interrupts them. Connects the rules, the conversations, the queue and the runs.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { ProviderName } from '../../shared/api/prompts.ts'
import type { Clock } from '../../shared/clock.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { createChangeNotifier } from './change-notifier.ts'
import { ConversationCleanup } from './conversations/conversation-cleanup.ts'
import { type Conversations, openConversations, toConversation } from './conversations/conversations.ts'
import { createInterrupts } from './interrupt-prompts.ts'
import type { Provider } from './providers/types.ts'
import { Dispatcher } from './queue/dispatcher.ts'
import { openQueue, type PromptQueue } from './queue/queue.ts'
import { createPromptReads } from './read-prompts.ts'
import type { PromptLimits } from './rules.ts'
import { PromptSubmissions } from './submit-prompts.ts'
import type { Prompts, Runs } from './types.ts'

export type PromptsOptions = {
  /** State directory of prompts, absolute. Created when missing. */
  dir: string
  home: string
  /** Closed by the caller, after the prompts. */
  runs: Runs
  providers: Readonly<Record<ProviderName, Pick<Provider, 'defaultAuto'>>>
  clock: Clock
  log: Logger
  /** A queued prompt keeps the box active. The process of a run does so itself. */
  activity: Pick<ActivityTracker, 'watch'>
  limits: PromptLimits
}

/** Restores the conversations and the queue, and starts the queued prompts that can start. */
export async function createPrompts(options: PromptsOptions): Promise<Prompts> {
  const { dir, home, runs, providers, clock, log, limits } = options
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const queue = await openQueue(join(dir, 'queue'), log)
  const conversations = openConversations(join(dir, 'conversations.json'), runs, log)
  const changes = createChangeNotifier()
  const closing = new AbortController()
  const dispatcher = new Dispatcher({ runs, queue, conversations, changes, limit: limits.runs, log })
  const cleanup = new ConversationCleanup({
    conversations,
    runs,
    isIdle: (id) => dispatcher.countActive(id) === 0,
    limit: limits.conversations,
    log,
  })
  const parts = { runs, queue, conversations, dispatcher, cleanup, changes }
  const submissions = new PromptSubmissions({ ...parts, home, providers, clock, limits })

  await restoreQueue(queue, runs, conversations)
  await cleanup.cleanUpAndSave()
  const unwatch = options.activity.watch(() => queue.entries().length > 0)
  dispatcher.dispatch()

  return {
    submit: (request) => submissions.submit(request),
    ...createPromptReads({ ...parts, runLimit: limits.runs, closing: closing.signal }),
    ...createInterrupts(parts),
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
      await cleanup.settle()
      await conversations.save()
    },
  }
}

/** Removes the entries whose run has started, and adds the conversations of the other entries. */
async function restoreQueue(queue: PromptQueue, runs: Runs, conversations: Conversations): Promise<void> {
  for (const entry of queue.entries()) {
    // The agent was killed after the start.
    if (runs.get(entry.id) !== undefined) await queue.remove(entry.id)
    else if (conversations.get(entry.conversationId) === undefined)
      conversations.add(toConversation(entry), entry.queuedAt)
  }
}
