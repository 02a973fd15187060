// The next events of several runs, for POST /prompts/poll. The client keeps the position, so that it survives restarts.
import type { PromptEvent, PromptPoll, PromptPollRequest } from '../../shared/api/prompts.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import type { RunState, Runs } from './types.ts'

export type PollDeps = {
  runs: Pick<Runs, 'get' | 'list' | 'readEvents'>
  changes: ChangeNotifier
  /** Whether the prompt is in the queue, or its run is starting. */
  isPending(id: string): boolean
  /** Runs in progress and queued prompts, of the conversation where one is given. */
  countActive(conversationId: string | undefined): number
  /** Aborts when the agent stops. */
  closing: AbortSignal
}

/** Of one response: the bounds of `runs` and `missing`. */
const MAX_RUNS = 256

export type Poll = (request: PromptPollRequest, signal: AbortSignal) => Promise<PromptPoll>

export function createPoll({ runs, changes, isPending, countActive, closing }: PollDeps): Poll {
  /** Which run comes first in a response: all of them get their turn when one fills the pages. */
  let turn = 0

  /** @returns oldest first */
  function findRuns({ conversation, after, startedAfter }: PromptPollRequest): RunState[] {
    const known = runs
      .list()
      .filter(({ conversationId }) => conversation === undefined || conversationId === conversation)
    const isFirst = startedAfter === undefined && Object.keys(after).length === 0
    if (isFirst && !known.some(({ status }) => status === 'running')) return known.slice(0, 1)
    const since = startedAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(startedAfter)
    return known
      .filter(({ id, status, eventCount, startedAt }) => {
        const position = after[id]
        if (position === undefined) return status === 'running' || startedAt > since
        return status !== 'running' || eventCount > position
      })
      .reverse()
  }

  async function readPages(request: PromptPollRequest, signal: AbortSignal): Promise<PromptPoll['runs']> {
    const found = findRuns(request).slice(0, MAX_RUNS)
    const first = found.length === 0 ? 0 : turn++ % found.length
    const limit = Math.max(1, Math.floor(LIMITS.promptEventsPage.max / found.length))
    const pages: PromptPoll['runs'] = []
    let remaining: number = LIMITS.promptEventsPageBytes
    for (const { id } of [...found.slice(first), ...found.slice(0, first)]) {
      if (remaining <= 0) break
      const after = request.after[id] ?? 0
      // Deleted meanwhile: the next response has the id in `missing`.
      if (runs.get(id) === undefined) continue
      const page = await runs.readEvents(id, { after, limit, waitMs: 0, signal })
      const { events, bytes } = takeEvents(page.events, remaining, pages.length === 0)
      remaining -= bytes
      const { run, next, finished } = page
      // The output of the last event is not readable yet.
      if (id in request.after && next === after && !finished) continue
      const last = events.at(-1)
      if (events.length === page.events.length) pages.push({ run, events, next, finished })
      else if (last !== undefined) pages.push({ run, events, next: last.seq, finished: false })
    }
    return pages
  }

  return async (request, signal) => {
    const deadline = performance.now() + request.waitMs
    const ids = Object.keys(request.after)
    for (;;) {
      const seen = changes.version()
      const active = countActive(request.conversation)
      const missing = ids.filter((id) => runs.get(id) === undefined && !isPending(id)).slice(0, MAX_RUNS)
      const pages = await readPages(request, signal)
      const remainingMs = deadline - performance.now()
      const hasChanged = pages.length > 0 || missing.length > 0 || active === 0
      if (hasChanged || remainingMs <= 0 || signal.aborted || closing.aborted)
        return { ok: true, type: 'prompt.poll', runs: pages, missing, active }
      await changes.wait(seen, remainingMs, [signal, closing])
    }
  }
}

/** The first events that fit; at least one when `atLeastOne`, because a page must not stay empty. */
function takeEvents(events: PromptEvent[], maxBytes: number, atLeastOne: boolean) {
  let bytes = 0
  for (const [index, event] of events.entries()) {
    const size = Buffer.byteLength(JSON.stringify(event))
    if (bytes + size > maxBytes && !(atLeastOne && index === 0))
      return { events: events.slice(0, index), bytes }
    bytes += size
  }
  return { events, bytes }
}
