// The read position in stdout and stderr: finds new bytes and gaps in each event, so that no byte is passed on twice.
import type { Offsets, StreamEvents } from '../../shared/api/processes.ts'
import { formatEventId } from '../../shared/event-id.ts'
import { invalidDataError } from '../connection/server-data.ts'
import type { StreamName } from './events.ts'

/** `bytes` starts at `offset` and is empty if all of it was read before; `missing` bytes before it were discarded. */
export type NewBytes = { bytes: Buffer; offset: number; missing: number }

export type StreamPosition = {
  /** Advances the position. @throws CliError when offsets and data do not match */
  advance(stream: StreamName, event: StreamEvents['stdout']): NewBytes
  /** How many bytes before `endOffset` were never received. */
  countMissing(stream: StreamName, endOffset: number): number
  /** The value of Last-Event-ID. */
  getEventId(): string
  hasReached(offsets: Offsets): boolean
}

/** @param start in bytes */
export function createStreamPosition(start: Offsets): StreamPosition {
  const position = { ...start }
  return {
    advance(stream, { data, offset, nextOffset }) {
      const bytes = Buffer.from(data, 'base64')
      if (nextOffset - offset !== bytes.length)
        throw invalidDataError(`${stream} data whose length does not match its offsets`)
      const expected = position[stream]
      position[stream] = Math.max(expected, nextOffset)
      const alreadyRead = Math.min(bytes.length, Math.max(0, expected - offset))
      const missing = bytes.length === 0 ? 0 : Math.max(0, offset - expected)
      return { bytes: bytes.subarray(alreadyRead), offset: offset + alreadyRead, missing }
    },
    countMissing: (stream, endOffset) => Math.max(0, endOffset - position[stream]),
    getEventId: () => formatEventId(position),
    hasReached: ({ stdout, stderr }) => position.stdout >= stdout && position.stderr >= stderr,
  }
}
