// Decides when runs start: at once, or from the queue when a run ends. Driven by the events of the runs, without polling.
import type { Logger } from 'pino'
import { boundedWait } from '../bounded-wait.ts'
import type { ChangeNotifier } from '../change-notifier.ts'
import type { Conversations } from '../conversations/conversations.ts'
import { isInScope, type RunInProgress, selectNext } from '../rules.ts'
import type { RunState, Runs } from '../types.ts'
import { type NewRun, startQueuedRun, startRun } from './conversation-runs.ts'
import type { PromptQueue, QueueEntry } from './queue.ts'
import { StartSlots } from './start-slots.ts'

/**
 * When the box stops, the init process signals the coding agents and the agent at the same time. After a run that is not
 * done, the next prompt waits this long, so that the agent has handled its signal before the prompt starts.
 */
const AFTER_FAILURE_MS = 200
/** The delay after a start whose failure could not be recorded: for example, the disk is full. */
const RETRY_MS = 10_000
/** How long close() waits for starts: a start may wait for the installation of a CLI. */
const CLOSE_TIMEOUT_MS = 1000

export type DispatcherOptions = {
  runs: Runs
  queue: PromptQueue
  conversations: Conversations
  changes: ChangeNotifier
  /** The most runs in progress. */
  limit: number
  log: Logger
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #starting: StartSlots
  /** Queued prompts that wait for a retry. */
  readonly #held = new Map<string, QueueEntry>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #unsubscribe: () => void
  #stopped = false

  constructor(options: DispatcherOptions) {
    const { runs, changes } = options
    this.#options = options
    this.#starting = new StartSlots(() => {
      changes.notify()
      this.dispatch()
    })
    this.#unsubscribe = runs.subscribe(({ status }) => {
      changes.notify()
      if (status === 'done') this.dispatch()
      else if (status !== 'running') this.#dispatchLater(AFTER_FAILURE_MS)
    })
  }

  /** Newest first. Includes runs that are starting. */
  inProgress(): RunInProgress[] {
    const running = this.#options.runs
      .list()
      .filter(({ id, status }) => status === 'running' && !this.#starting.has(id))
      .map(({ id, conversationId, provider }) => ({ id, conversationId, provider }))
    return [...this.#starting.list(), ...running]
  }

  isStarting(id: string): boolean {
    return this.#starting.has(id)
  }

  /** Whether the prompt is in the queue, or its run is starting. */
  isPending(id: string): boolean {
    return this.#options.queue.get(id) !== undefined || this.isStarting(id)
  }

  /** Counts the runs in progress and the queued prompts. @param conversationId undefined: of the whole box */
  countActive(conversationId: string | undefined): number {
    const prompts = [...this.inProgress(), ...this.#options.queue.entries()]
    return new Set(prompts.filter(isInScope(conversationId)).map(({ id }) => id)).size
  }

  /** The queued prompts, in order, without those that are starting. */
  waiting(): QueueEntry[] {
    return this.#options.queue.entries().filter(({ id }) => !this.#starting.has(id))
  }

  /** Starts a run in a conversation that exists. @throws as Runs.start() */
  start(run: NewRun): Promise<RunState> {
    return this.#starting.occupy(run, (signal) => startRun(this.#options, run, signal))
  }

  /**
   * Interrupts a start in progress: a run whose process has not been started is recorded as interrupted. Resolves when the
   * start has ended, also when it has failed.
   */
  interruptStart(id: string, cause: string): Promise<void> {
    return this.#starting.interrupt(id, cause)
  }

  /** Starts the queued prompts that can start. */
  dispatch(): void {
    while (!this.#stopped) {
      const current = this.inProgress()
      if (current.length >= this.#options.limit) return
      const next = selectNext(this.waiting(), [...current, ...this.#held.values()])
      if (next === null) return
      void this.#starting.occupy(next, (signal) => this.#startOrHold(next, signal))
    }
  }

  /** No queued prompt starts any more. */
  stop(): void {
    this.#stopped = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  async close(): Promise<void> {
    this.#unsubscribe()
    await boundedWait(this.#starting.settle(), CLOSE_TIMEOUT_MS, [])
  }

  async #startOrHold(entry: QueueEntry, signal: AbortSignal): Promise<void> {
    try {
      await startQueuedRun(this.#options, entry, { signal, isStopped: () => this.#stopped })
    } catch (err) {
      const { log } = this.#options
      log.error({ err, runId: entry.id }, 'failed to record a run that could not start; will retry')
      this.#held.set(entry.id, entry)
      this.#dispatchLater(RETRY_MS, () => this.#held.delete(entry.id))
    }
  }

  /** @param before called before the dispatch */
  #dispatchLater(ms: number, before: () => unknown = () => undefined): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      before()
      this.dispatch()
    }, ms).unref()
    this.#timers.add(timer)
  }
}
