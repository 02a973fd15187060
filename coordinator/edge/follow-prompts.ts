// Streams the events of one run, or of all runs, from the pages that the agent sends (spec §4.16).
import { MAX_POLL_MS, type PromptPollRequest, type Run } from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import { describeError, type EventWriter, formatEvent } from '../http/event-writer.ts'
import type { AgentPoller } from './poll-agent.ts'
import { formatPosition, type RunsPosition } from './prompt-positions.ts'
import type { AgentRequest } from './request-agent.ts'
import type { PageNumbers, StreamPage } from './response-bounds.ts'
import type { AgentResponse } from './response-parser.ts'

/** More than the runs that may be in progress. */
const MAX_FOLLOWED_RUNS = 256

const protocolError = (problem: string) =>
  createAgentProtocolError(`The agent sent invalid events: ${problem}.`)

/** Throws exec_failed when the page does not continue after `after`. */
export function assertPage({ count, first, next }: PageNumbers, after: number, limit: number): void {
  if (count > limit) throw protocolError('too many events')
  if (first !== null && first <= after) throw protocolError('an event that was sent before')
  if (next < after) throw protocolError('a decreasing position')
}

function getBatch({ batch }: AgentResponse): NonNullable<AgentResponse['batch']> {
  if (batch === undefined) throw new Error('the response has no events')
  return batch
}

export type RunPosition = { runId: string; after: number }

/** The request for the events of a run after a position. */
export const createPageRequest = (
  { runId, after }: RunPosition,
  { limit, waitMs }: { limit: number; waitMs: number },
): AgentRequest => ({
  method: 'GET',
  path: `/prompts/${runId}/events?after=${after}&limit=${limit}&waitMs=${waitMs}`,
  type: 'prompt.stream',
})

/** Returns the page of the run. Throws exec_failed when the response is for another run or position. */
export function readRunPage(response: AgentResponse, { runId, after }: RunPosition): StreamPage {
  const [page] = getBatch(response).pages
  if (page === undefined) throw new Error('the response has no page')
  if (page.run !== null && page.run.id !== runId)
    throw createAgentProtocolError('The agent responded for a different run.')
  assertPage(page, after, LIMITS.promptEventsPage.max)
  return page
}

/**
 * Writes the events of a run until its end.
 * @param position updated with each page
 * @param first the page after the position @returns the final event
 */
export async function followRun(
  writer: EventWriter,
  { poll, delayAfterEmpty }: AgentPoller,
  position: RunPosition,
  first: StreamPage,
): Promise<string> {
  const { signal } = writer
  const { max: limit } = LIMITS.promptEventsPage
  for (let page = first; ; ) {
    position.after = page.next
    if (page.count > 0)
      await writer.write(page.events.map(({ seq, json }) => formatEvent('prompt', `${seq}`, json)).join(''))
    if (page.finished) {
      const { run, next } = page
      return formatEvent('done', `${next}`, JSON.stringify({ run, next }))
    }
    const request = createPageRequest(position, { limit, waitMs: MAX_POLL_MS })
    page = readRunPage(await poll(request, signal), position)
    if (page.count === 0 && !page.finished) await delayAfterEmpty(signal)
  }
}

/**
 * Writes the events of all runs in progress, and of those that start meanwhile, until none is left.
 * @param position updated with each event
 * @param conversation only its runs
 * @returns the final event
 */
export async function followRuns(
  writer: EventWriter,
  { poll, delayAfterEmpty }: AgentPoller,
  position: RunsPosition,
  conversation: string | undefined,
): Promise<string> {
  const { signal } = writer
  const { runs } = position
  /** Runs of this stream whose event `run` was sent. */
  const announced = new Set<string>()
  let text = ''
  const add = (name: string, json: string) => {
    text += formatEvent(name, formatPosition(position), json)
  }

  function addPage(page: StreamPage): void {
    const { run, events, next, finished } = page
    if (run === null || (conversation !== undefined && run.conversationId !== conversation))
      throw createAgentProtocolError('The agent responded for a different conversation.')
    assertPage(page, runs.get(run.id) ?? 0, LIMITS.promptEventsPage.max)
    announce(run)
    for (const { seq, json } of events) {
      runs.set(run.id, seq)
      add('prompt', json)
    }
    runs.set(run.id, next)
    if (!finished) return
    runs.delete(run.id)
    announced.delete(run.id)
    add('run.done', JSON.stringify({ run, next }))
  }

  function announce(run: Run): void {
    if (announced.has(run.id)) return
    announced.add(run.id)
    add('run', JSON.stringify({ run }))
  }

  for (let waitMs = 0; ; ) {
    const after = Object.fromEntries(runs)
    const body: PromptPollRequest = {
      ...(conversation !== undefined && { conversation }),
      after,
      ...(position.sequence !== null && { sequence: position.sequence }),
      waitMs,
    }
    const { pages, missing, sequence, active } = getBatch(await poll(createPollRequest(body), signal))
    // First, so that a client that reconnects after any event of this response gets all of its runs.
    position.sequence = sequence
    for (const { run } of pages) if (run !== null && !runs.has(run.id)) runs.set(run.id, 0)
    if (runs.size > MAX_FOLLOWED_RUNS) throw protocolError('too many runs')
    text = ''
    for (const id of missing) {
      if (!runs.delete(id)) throw protocolError('a missing run that was not requested')
      announced.delete(id)
      const problem = conversation === undefined ? 'no longer exists' : 'is no longer in the conversation'
      add('error', describeError(new ApiError('not_found', `The run ${id} ${problem}.`)))
    }
    for (const page of pages) addPage(page)
    if (text !== '') await writer.write(text)
    const isIdle = active === 0 && runs.size === 0
    if (isIdle && text === '') return formatEvent('done', formatPosition(position), '{}')
    // Further runs may not have fitted into the response.
    waitMs = isIdle ? 0 : MAX_POLL_MS
    if (text === '') await delayAfterEmpty(signal)
  }
}

const createPollRequest = (body: PromptPollRequest): AgentRequest => ({
  method: 'POST',
  path: '/prompts/poll',
  body: JSON.stringify(body),
  type: 'prompt.poll',
})
