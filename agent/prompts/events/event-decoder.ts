// Converts the bytes of a run's log to numbered events. Pure: the numbers depend only on the bytes and the start.

import { INITIAL_MAPPER_STATE, type MapperState, type Provider } from '../providers/types.ts'
import { createLineSplitter, type LogLine } from './line-splitter.ts'
import { createNotice, type DraftEvent, mapLine } from './map-line.ts'

/** A position in a log from which decoding can start. */
export type LogPosition = {
  /** The offset of the start of a line. */
  readonly offset: number
  /** Number of the last event before the position. */
  readonly seq: number
  readonly state: MapperState
  /** Text of a notice that is the next event, before the line at `offset`: a line was omitted, or output was discarded. */
  readonly notice: string | null
}

export const LOG_START: LogPosition = { offset: 0, seq: 0, state: INITIAL_MAPPER_STATE, notice: null }

export type DecodedLine = {
  /** A decoder that starts here returns the same events. The number of the first event is `before.seq + 1`. */
  before: LogPosition
  events: DraftEvent[]
  /** Whether the coding agent has written the line: a JSON object, or a line that was omitted. */
  isReport: boolean
}

export type EventDecoder = {
  /** Takes chunks in the order of their offsets. An offset beyond the end of the previous chunk means discarded output. */
  push(offset: number, bytes: Buffer): Generator<DecodedLine, void, undefined>
  /** Returns the line without a newline at the end of the log. */
  end(): Generator<DecodedLine, void, undefined>
  /** The position after the last returned line. */
  readonly position: LogPosition
}

export function createEventDecoder(provider: Pick<Provider, 'mapLine'>, start: LogPosition): EventDecoder {
  const splitter = createLineSplitter(start.offset)
  let { seq, state, notice } = start

  function decode(line: LogLine): DecodedLine {
    const isOmitted = line.kind !== 'line'
    const before = {
      offset: isOmitted ? line.end : line.start,
      seq,
      state,
      notice: isOmitted ? describeOmission(line) : null,
    }
    const mapped = isOmitted
      ? { events: [createNotice(describeOmission(line))], state: { ...state, isLastLineOmitted: true } }
      : mapLine(line.bytes, provider, state)
    const isReport = isOmitted || mapped.events.every(({ raw }) => typeof raw !== 'string')
    state = mapped.state
    seq += mapped.events.length
    return { before, events: mapped.events, isReport }
  }
  function* takeNotice(): Generator<DecodedLine, void, undefined> {
    if (notice === null) return
    const before = { offset: start.offset, seq, state, notice }
    const events = [createNotice(notice)]
    notice = null
    seq += 1
    yield { before, events, isReport: false }
  }

  return {
    *push(offset, bytes) {
      yield* takeNotice()
      for (const line of splitter.push(offset, bytes)) yield decode(line)
    },
    *end() {
      yield* takeNotice()
      for (const line of splitter.end()) yield decode(line)
    },
    get position() {
      return { offset: splitter.lineStart, seq, state, notice }
    },
  }
}

const describeOmission = ({ kind, start, end }: LogLine): string =>
  kind === 'gap'
    ? `${end - start} bytes of output were discarded.`
    : `A line of ${end - start} bytes was omitted.`
