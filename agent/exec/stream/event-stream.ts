// The events of a detached process as a stream, for an answer's body.
import { Readable } from 'node:stream'
import { type EventOptions, produceEvents } from './produce-events.ts'

/** Small events are made ahead up to this. */
const BUFFER_BYTES = 64 * 1024

export function eventStream(options: EventOptions): Readable {
  const stream = new Readable({
    highWaterMark: BUFFER_BYTES,
    read: () => events.more(),
    destroy(error, done) {
      events.stop()
      done(error)
    },
  })
  const events = produceEvents(options, {
    push: (bytes) => stream.push(bytes),
    end: () => void stream.push(null),
  })
  return stream
}
