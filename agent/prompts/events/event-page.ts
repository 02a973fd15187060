// Reads one page of events from the log of a run.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { PromptEvent } from '../../../shared/api/prompts.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { OutputLog } from '../../exec/detached/types.ts'
import type { Provider } from '../providers/types.ts'
import { boundEvent } from './bound-event.ts'
import type { Checkpoint } from './checkpoints.ts'
import { createEventDecoder, type DecodedLine, LOG_START } from './event-decoder.ts'
import type { OutputTimeLookup } from './output-time-lookup.ts'

const CHUNK_BYTES = 64 * 1024

export type PageSource = {
  output: Pick<OutputLog, 'read'>
  times: OutputTimeLookup
  provider: Pick<Provider, 'mapLine'>
  /** Where decoding can start, in ascending order of `offset` and `seq`. */
  starts: readonly Checkpoint[]
  /** How far the events are numbered. `isFinal`: the process has exited; the last line may have no newline. */
  end: { offset: number; seq: number; isFinal: boolean }
  /** The time of output before the first start whose time is unknown, in milliseconds since the epoch. */
  startedAt: number
}

export type EventPage = {
  events: PromptEvent[]
  /** Number of the last event of the page, or of the last event of the run, if no event follows the page. */
  next: number
  reachedEnd: boolean
}

/**
 * Reads a page of events, which is incomplete when the signal aborts. A page stops at LIMITS.promptEventsPageBytes, but not
 * before its first event.
 * @param options.limit at least 1
 */
export async function readEventPage(
  { output, times, provider, starts, end, startedAt }: PageSource,
  { after, limit, signal }: { after: number; limit: number; signal: AbortSignal },
): Promise<EventPage> {
  const start = starts.findLast(({ seq }) => seq <= after) ?? LOG_START
  const events: PromptEvent[] = []
  let decoder = createEventDecoder(provider, start)
  let readOffset = start.offset
  let pageBytes = 0

  const findTime = (offset: number) =>
    times.find(offset, Math.max(readOffset, offset + 1)) ??
    starts.findLast((checkpoint) => checkpoint.offset <= offset)?.at ??
    startedAt
  /** Returns false when the page is full. */
  function addLine({ before, events: drafts }: DecodedLine): boolean {
    for (const [index, { type, text, tool, raw }] of drafts.entries()) {
      const seq = before.seq + 1 + index
      if (seq <= after) continue
      if (events.length === limit) return false
      const at = toTimestamp(findTime(before.offset))
      const { event, bytes } = boundEvent({ seq, at, type, text, tool, raw })
      if (events.length > 0 && pageBytes + bytes > LIMITS.promptEventsPageBytes) return false
      events.push(event)
      pageBytes += bytes
    }
    return true
  }
  /** Stops decoding when the page is full. */
  function addLines(lines: Iterable<DecodedLine>): boolean {
    for (const line of lines) if (!addLine(line)) return false
    return true
  }
  const page = (reachedEnd: boolean): EventPage => {
    const last = events.at(-1)?.seq ?? after
    return { events, reachedEnd, next: reachedEnd ? Math.max(last, end.seq) : last }
  }

  // A start can have an event without output: its notice.
  let isFull = !addLines(decoder.push(start.offset, Buffer.alloc(0)))
  while (!isFull && readOffset < end.offset) {
    const chunk = await output.read(readOffset, Math.min(CHUNK_BYTES, end.offset - readOffset))
    if (signal.aborted) return page(false)
    let { offset } = chunk
    // All output is discarded. Under the shell runner, background processes may append to the log of an ended run.
    if (offset >= end.offset) return page(true)
    let bytes = chunk.bytes.subarray(0, end.offset - offset)
    if (offset > readOffset) {
      // The head of the log was discarded: continue at the first position with a known number.
      const next = starts.find((position) => position.offset >= offset && position.offset <= end.offset)
      if (next === undefined && !end.isFinal) return page(true)
      decoder = createEventDecoder(provider, next ?? { ...LOG_START, seq: offset })
      if (next !== undefined) {
        offset = next.offset
        bytes = Buffer.alloc(0)
      }
    } else if (bytes.length === 0) break
    readOffset = offset + bytes.length
    isFull = !addLines(decoder.push(offset, bytes))
    await yieldToEventLoop()
  }
  if (!isFull && end.isFinal) isFull = !addLines(decoder.end())
  return page(!isFull)
}
