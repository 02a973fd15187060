// How far the two streams were read: what is new in an event, what was given up before it, and never a byte twice.
import { eventId, type Offsets, type StreamEvents } from '../../shared/api/processes.ts'
import { malformed, type StreamName } from './events.ts'

/** `bytes` is empty when all of it was seen before; `lost` is how many bytes before it are no longer kept. */
export type News = { bytes: Buffer; offset: number; lost: number }

export type Place = {
  /** @throws Failure when the event does not add up */
  accept(stream: StreamName, event: StreamEvents['stdout']): News
  /** How many bytes before `end` never came. */
  missing(stream: StreamName, end: number): number
  /** As Last-Event-ID has it. */
  id(): string
  reached(offsets: Offsets): boolean
}

/** @param start in bytes */
export function createPlace(start: Offsets): Place {
  const at = { ...start }
  return {
    accept(stream, { data, offset, nextOffset }) {
      const bytes = Buffer.from(data, 'base64')
      if (nextOffset - offset !== bytes.length) throw malformed(`${stream} that does not add up`)
      const expected = at[stream]
      at[stream] = Math.max(expected, nextOffset)
      const seen = Math.min(bytes.length, Math.max(0, expected - offset))
      const lost = bytes.length === 0 ? 0 : Math.max(0, offset - expected)
      return { bytes: bytes.subarray(seen), offset: offset + seen, lost }
    },
    missing: (stream, end) => Math.max(0, end - at[stream]),
    id: () => eventId(at),
    reached: ({ stdout, stderr }) => at.stdout >= stdout && at.stderr >= stderr,
  }
}
