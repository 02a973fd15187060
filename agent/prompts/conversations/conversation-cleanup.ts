// Deletes the least recently active conversations beyond the limit, with their runs, and conversations without a run.
import type { Logger } from 'pino'
import type { Runs } from '../types.ts'
import type { Conversations } from './conversations.ts'

export type ConversationCleanupOptions = {
  conversations: Pick<Conversations, 'list' | 'remove' | 'save'>
  runs: Pick<Runs, 'list' | 'remove'>
  /** Whether the conversation has neither a run in progress nor a queued prompt. */
  isIdle(id: string): boolean
  /** The most conversations of the box. */
  limit: number
  log: Logger
}

export class ConversationCleanup {
  readonly #options: ConversationCleanupOptions
  #removals: Promise<void> = Promise.resolve()

  constructor(options: ConversationCleanupOptions) {
    this.#options = options
  }

  /**
   * Resolves when the remaining conversations are saved. The runs are deleted in the background: if the agent is killed
   * before, the next agent creates the conversations of the remaining runs again, and then deletes them.
   */
  async cleanUpAndSave(): Promise<void> {
    const { conversations } = this.#options
    const expired = this.#findExpired()
    for (const id of expired) conversations.remove(id)
    if (expired.size > 0) this.#removeRuns(expired)
    await conversations.save()
  }

  /** Resolves when the runs of the deleted conversations are deleted. */
  async settle(): Promise<void> {
    await this.#removals
  }

  #findExpired(): Set<string> {
    const { conversations, isIdle, limit } = this.#options
    const all = conversations.list()
    const idle = all.filter(({ id }) => isIdle(id))
    const excess = Math.max(0, all.length - limit)
    const leastRecent = idle.slice(Math.max(0, idle.length - excess))
    const withoutRun = idle.filter(({ prompts }) => prompts === 0)
    return new Set([...leastRecent, ...withoutRun].map(({ id }) => id))
  }

  #removeRuns(conversationIds: ReadonlySet<string>): void {
    const { runs, log } = this.#options
    const removed = runs.list().filter(({ conversationId }) => conversationIds.has(conversationId))
    this.#removals = Promise.all([this.#removals, ...removed.map(({ id }) => runs.remove(id))]).then(
      () => undefined,
      (err: unknown) => log.error({ err }, 'failed to delete the runs of a conversation'),
    )
  }
}
