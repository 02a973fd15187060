// Starts runs: at once, or from the queue when a run ends. Driven by the events of the runs, without polling.
import type { FastifyBaseLogger } from 'fastify'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { boundedWait } from '../bounded-wait.ts'
import type { ChangeNotifier } from '../change-notifier.ts'
import type { Conversations } from '../conversations.ts'
import { type RunInProgress, selectNext } from '../rules.ts'
import type { RunState, Runs, StartRunOptions } from '../types.ts'
import type { PromptQueue, QueueEntry, StoredPrompt } from './queue.ts'

/**
 * When the box stops, the init signals the coding agents and the agent at the same time. The next prompt waits until the
 * agent has handled its signal.
 */
const AFTER_FAILURE_MS = 200
/** For example, the disk is full. */
const RETRY_MS = 10_000
/** For starts that wait for the installation of a CLI when the agent stops. */
const CLOSE_TIMEOUT_MS = 1000

export type DispatcherOptions = {
  runs: Runs
  queue: PromptQueue
  conversations: Conversations
  changes: ChangeNotifier
  /** The most runs in progress. */
  limit: number
  log: FastifyBaseLogger
}

export type NewRun = Omit<StartRunOptions, 'resumedFrom' | 'parent'>

export type Dispatcher = {
  /** Newest first. Includes runs that are starting. */
  inProgress(): RunInProgress[]
  isStarting(id: string): boolean
  /**
   * Interrupts a start in progress: a run whose process has not been started is recorded as interrupted. Resolves when the
   * start has ended, also when it has failed.
   */
  interruptStart(id: string, cause: string): Promise<void>
  /** Starts a run in a conversation that exists. @throws as Runs.start() */
  start(run: NewRun): Promise<RunState>
  /** Starts the queued prompts that can start. */
  dispatch(): void
  /** No queued prompt starts any more. */
  stop(): void
  close(): Promise<void>
}

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { runs, queue, conversations, changes, limit, log } = options
  type Starting = {
    conversationId: string
    provider: ProviderName
    /** Aborts with the cause. */
    interruption: AbortController
    settled: Promise<unknown>
  }
  const starting = new Map<string, Starting>()
  /** Queued prompts that wait for a retry. */
  const held = new Map<string, { conversationId: string }>()
  const timers = new Set<NodeJS.Timeout>()
  let stopped = false

  const inProgress = (): RunInProgress[] => {
    const startingRuns = [...starting].map(([id, { conversationId, provider }]) => ({
      id,
      conversationId,
      provider,
    }))
    const running = runs.list().filter(({ id, status }) => status === 'running' && !starting.has(id))
    return [
      ...startingRuns.reverse(),
      ...running.map(({ id, conversationId, provider }) => ({ id, conversationId, provider })),
    ]
  }
  const dispatchLater = (ms: number, before: () => unknown = () => undefined) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      before()
      dispatch()
    }, ms).unref()
    timers.add(timer)
  }
  const unsubscribe = runs.subscribe((run) => {
    changes.notify()
    if (run.status === 'done') dispatch()
    else if (run.status !== 'running') dispatchLater(AFTER_FAILURE_MS)
  })

  /** Occupies a slot of the box and the conversation until `start` has ended. */
  async function occupy<T>(
    { id, conversationId, provider }: Pick<NewRun, 'id' | 'conversationId' | 'provider'>,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const settled = Promise.withResolvers<void>()
    const interruption = new AbortController()
    starting.set(id, { conversationId, provider, interruption, settled: settled.promise })
    try {
      return await start(interruption.signal)
    } finally {
      starting.delete(id)
      settled.resolve()
      changes.notify()
      dispatch()
    }
  }
  const continueConversation = (run: NewRun): StartRunOptions => {
    const conversation = conversations.get(run.conversationId)
    return {
      ...run,
      resumedFrom: conversation?.sessionId ?? null,
      parent: conversation?.lastRunId ?? null,
    }
  }
  async function startAndAttach(run: NewRun, signal: AbortSignal): Promise<RunState> {
    const request = continueConversation(run)
    const state = await runs.start(request, signal).catch((error: unknown) => {
      if (!signal.aborted || error !== signal.reason) throw error
      return runs.recordUnstarted(request, { status: 'interrupted', error: String(signal.reason) })
    })
    conversations.attach(state)
    return state
  }

  /** false: the agent stops, and the next one starts the prompt. */
  async function startOrRecordFailure(entry: QueueEntry, signal: AbortSignal): Promise<boolean> {
    const { promptPreview, queuedAt: _, sequence: __, ...fields } = entry
    let content: StoredPrompt = { prompt: promptPreview, boxEnv: {} }
    try {
      content = await queue.read(entry.id)
      await startAndAttach({ ...fields, ...content }, signal)
    } catch (err) {
      if (stopped) return false
      const error = err instanceof ApiError ? err.message : 'The run could not be started.'
      if (!(err instanceof ApiError)) log.error({ err, runId: entry.id }, 'failed to start a queued prompt')
      const request = continueConversation({ ...fields, ...content })
      conversations.attach(await runs.recordUnstarted(request, { status: 'failed', error }))
    }
    return true
  }
  async function startQueued(entry: QueueEntry, signal: AbortSignal): Promise<void> {
    try {
      await queue.waitUntilStored(entry.id)
    } catch {
      // submit() reports the error. The entry has been removed.
      return
    }
    if (!(await startOrRecordFailure(entry, signal))) return
    await conversations.save()
    // A restarted agent removes the files of a prompt that has a run.
    await queue
      .remove(entry.id)
      .catch((err: unknown) =>
        log.error({ err, runId: entry.id }, 'failed to remove a prompt from the queue'),
      )
  }
  async function startOrHold(entry: QueueEntry, signal: AbortSignal): Promise<void> {
    try {
      await startQueued(entry, signal)
    } catch (err) {
      log.error({ err, runId: entry.id }, 'failed to record a run that could not start; will retry')
      held.set(entry.id, entry)
      dispatchLater(RETRY_MS, () => held.delete(entry.id))
    }
  }
  function dispatch(): void {
    while (!stopped) {
      const current = inProgress()
      if (current.length >= limit) return
      const waiting = queue.entries().filter(({ id }) => !starting.has(id))
      const next = selectNext(waiting, [...current, ...held.values()])
      if (next === null) return
      void occupy(next, (signal) => startOrHold(next, signal))
    }
  }

  return {
    inProgress,
    isStarting: (id) => starting.has(id),
    async interruptStart(id, cause) {
      const start = starting.get(id)
      start?.interruption.abort(cause)
      await start?.settled
    },
    start: (run) => occupy(run, (signal) => startAndAttach(run, signal)),
    dispatch,
    stop() {
      stopped = true
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
    async close() {
      unsubscribe()
      const settled = Promise.all([...starting.values()].map((start) => start.settled))
      await boundedWait(settled, CLOSE_TIMEOUT_MS, [])
    },
  }
}
