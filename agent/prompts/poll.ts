// The next events of several runs, for POST /prompts/poll. The client keeps the position, so that it survives restarts.
import type { PromptEvent, PromptPoll, PromptPollRequest } from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import { toRun } from './runs/run-fields.ts'
import type { RunState, Runs } from './types.ts'

export type PollDeps = {
  runs: Pick<Runs, 'get' | 'list' | 'sequence' | 'readEvents'>
  changes: ChangeNotifier
  /** Whether the prompt is in the queue, or its run is starting. */
  isPending(id: string): boolean
  /** Counts the runs in progress and the queued prompts. @param conversationId undefined: of the whole box */
  countActive(conversationId: string | undefined): number
  /** Aborts when the agent stops. */
  closing: AbortSignal
}

/** The most items of `runs`, and of `missing`, in one response. */
const MAX_RUNS = 256

export type Poll = (request: PromptPollRequest, signal: AbortSignal) => Promise<PromptPoll>

export function createPoll({ runs, changes, isPending, countActive, closing }: PollDeps): Poll {
  /** Determines which run is first in a response: if one run fills the response, each run is first in turn. */
  let turn = 0

  const isIncluded = (conversation: string | undefined, run: RunState | undefined): boolean =>
    run !== undefined && (conversation === undefined || run.conversationId === conversation)

  /** @returns oldest first, at most MAX_RUNS with those of the request. `sequence`: of the response */
  function findRuns({ conversation, after, sequence }: PromptPollRequest) {
    const newest = runs.sequence()
    const known = runs.list().filter((run) => isIncluded(conversation, run))
    const isFirst = sequence === undefined && Object.keys(after).length === 0
    if (isFirst && !known.some(({ status }) => status === 'running'))
      return { found: known.slice(0, 1), sequence: newest }
    // A box that was restored from a snapshot continues at an earlier number.
    const since = sequence === undefined ? newest : Math.min(sequence, newest)
    const found = known
      .filter((run) => {
        const position = after[run.id]
        if (position === undefined) return run.status === 'running' || run.sequence > since
        return run.status !== 'running' || run.eventCount > position
      })
      .reverse()
    const isNew = ({ id }: RunState) => after[id] === undefined
    const excess = found.filter(isNew).slice(Math.max(0, MAX_RUNS - Object.keys(after).length))
    const [firstExcess] = excess
    return {
      found: found.filter((run) => !excess.includes(run)),
      sequence: firstExcess === undefined ? newest : Math.max(since, firstExcess.sequence - 1),
    }
  }

  /** Returns null when the run, or its output, has been deleted. */
  async function readPage(id: string, options: { after: number; limit: number; signal: AbortSignal }) {
    try {
      return await runs.readEvents(id, { ...options, waitMs: 0 })
    } catch (error) {
      if (error instanceof ApiError && error.code === 'not_found') return null
      throw error
    }
  }

  async function readPages(found: readonly RunState[], request: PromptPollRequest, signal: AbortSignal) {
    const first = found.length === 0 ? 0 : turn++ % found.length
    const limit = Math.max(1, Math.floor(LIMITS.promptEventsPage.max / found.length))
    const pages: PromptPoll['runs'] = []
    const missing: string[] = []
    let remaining: number = LIMITS.promptEventsPageBytes
    for (const state of [...found.slice(first), ...found.slice(0, first)]) {
      const { id } = state
      const isNew = request.after[id] === undefined
      const after = request.after[id] ?? 0
      // A new run whose events do not fit is returned without events. The client requests the events of known runs.
      const unread = isNew ? [{ run: toRun(state), events: [], next: after, finished: false }] : []
      if (remaining <= 0) {
        pages.push(...unread)
        continue
      }
      const page = await readPage(id, { after, limit, signal })
      if (page === null) {
        if (!isNew) missing.push(id)
        continue
      }
      const { events, bytes } = takeEvents(page.events, remaining, pages.length === 0)
      remaining -= bytes
      const { run, next, finished } = page
      // The output of the last event is not readable yet.
      if (!isNew && next === after && !finished) continue
      const last = events.at(-1)
      if (events.length === page.events.length) pages.push({ run, events, next, finished })
      else if (last !== undefined) pages.push({ run, events, next: last.seq, finished: false })
      else pages.push(...unread)
    }
    return { pages, missing }
  }

  return async (request, signal) => {
    const deadline = performance.now() + request.waitMs
    const ids = Object.keys(request.after)
    for (;;) {
      const seen = changes.version()
      const active = countActive(request.conversation)
      const unknown = ids.filter((id) => !isIncluded(request.conversation, runs.get(id)) && !isPending(id))
      const { found, sequence } = findRuns(request)
      const { pages, missing: unreadable } = await readPages(found, request, signal)
      const missing = [...unknown, ...unreadable].slice(0, MAX_RUNS)
      const remainingMs = deadline - performance.now()
      const hasChanged = pages.length > 0 || missing.length > 0 || active === 0
      if (hasChanged || remainingMs <= 0 || signal.aborted || closing.aborted)
        return { ok: true, type: 'prompt.poll', runs: pages, missing, sequence, active }
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
