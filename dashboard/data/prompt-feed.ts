// Follows the prompts of a box: lists that are polled, and one stream while runs are in progress.
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { ConversationList, PromptEvent, PromptList, Run } from '../../shared/api/prompts.ts'
import { toBoxwoodError } from '../api/errors.ts'
import type { Prompts } from '../api/prompts.ts'
import type { AcquireStream } from './stream-slots.ts'

export type PromptLists = { conversations: ConversationList; prompts: PromptList }

export type PromptFeedOptions = {
  prompts: Pick<Prompts, 'list' | 'listConversations' | 'follow'>
  acquireStream: AcquireStream
  /** Loads the events of a run that are not there. Rejects with BoxwoodError. */
  loadEvents(runId: string): Promise<void>
  /** Resolves after the time, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  onLists(lists: PromptLists): void
  onRun(run: Run, isFinished: boolean): void
  onEvent(runId: string, event: PromptEvent): void
  /** Null: the last request was successful. */
  onError(error: BoxwoodError | null): void
}

export type PromptFeed = {
  start(): void
  /** Events continue where they stopped when it starts again. */
  stop(): void
  /** Selects the conversation whose runs are listed; null: all. */
  select(conversation: string | null): void
  /** Reads the lists now. */
  refresh(): Promise<void>
}

const POLL_MS = 5_000
/** While other tabs have all streams. */
const EVENTS_POLL_MS = 2_000
const MAX_DELAY_MS = 15_000

export function createPromptFeed(options: PromptFeedOptions): PromptFeed {
  const { prompts, acquireStream, loadEvents, wait, onLists, onRun, onEvent, onError } = options
  let conversation: string | null = null
  let lastEventId = ''
  let controller: AbortController | null = null
  let isActive = false
  /** The ids of the listed runs in progress. */
  let running: string[] = []
  let requests = 0
  let resumeStream = () => {}

  async function refresh(): Promise<void> {
    requests += 1
    const request = requests
    const selected = conversation
    try {
      const [conversations, list] = await Promise.all([prompts.listConversations(), prompts.list(selected)])
      // A later request may have responded first.
      if (request !== requests || selected !== conversation) return
      isActive = conversations.running > 0 || conversations.conversations.some(({ queued }) => queued > 0)
      isActive ||= list.active !== null || list.queued.length > 0
      running = list.runs.filter(({ status }) => status === 'running').map(({ id }) => id)
      onLists({ conversations, prompts: list })
      onError(null)
    } catch (error) {
      if (request === requests && controller !== null) onError(toBoxwoodError(error))
    }
    if (isActive) resumeStream()
  }

  async function poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await refresh()
      await wait(POLL_MS, signal)
    }
  }

  const follow = (signal: AbortSignal, onConnected: () => void): Promise<void> =>
    prompts.follow(lastEventId, signal, {
      onRun(run) {
        onConnected()
        onRun(run, false)
        void refresh()
      },
      onEvent,
      onRunDone(run) {
        onRun(run, true)
        void refresh()
      },
      onPosition(id) {
        lastEventId = id
      },
    })

  async function followRuns(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      if (!isActive)
        await new Promise<void>((resolve) => {
          resumeStream = resolve
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
      if (signal.aborted) return
      try {
        const release = await acquireStream()
        if (release === null) {
          await Promise.all(running.map(loadEvents))
          await wait(EVENTS_POLL_MS, signal)
        } else {
          await follow(signal, () => {
            failures = 0
          }).finally(release)
          isActive = false
          await refresh()
        }
        failures = 0
      } catch {
        // The lists report what does not respond.
        failures += 1
        await wait(Math.min(500 * 2 ** failures, MAX_DELAY_MS), signal)
      }
    }
  }

  return {
    start() {
      if (controller !== null) return
      controller = new AbortController()
      void poll(controller.signal)
      void followRuns(controller.signal)
    },
    stop() {
      controller?.abort()
      controller = null
    },
    select(id) {
      if (id === conversation) return
      conversation = id
      if (controller !== null) void refresh()
    },
    refresh,
  }
}
