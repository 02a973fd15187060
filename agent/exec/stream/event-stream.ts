// The output of a detached process as events (spec §4.14), made when the reader asks for them. All that a reader has is
// its place in the two logs: one that stalls costs what it was sent last, and nothing more is read or watched for it.
import { Readable } from 'node:stream'
import type { StreamEvents } from '../../../shared/api/processes.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { DetachedProcess, ProcessEnd, StreamName } from '../detached/types.ts'
import { type Cursor, nextOutput, outputNow } from './cursor.ts'
import { type Encoding, encodeEvent, type Offsets } from './event.ts'
import { onEnd } from './on-end.ts'
import { type StreamTime, systemTime } from './time.ts'

export type EventStreamOptions = {
  process: DetachedProcess
  /** Where to begin, in bytes. Past the end of a log that is followed means at its end; `attached` says so. */
  offsets: Offsets
  /** Those that are followed; the offset of another stays as it is. */
  streams: readonly StreamName[]
  encoding: Encoding
  /** Told of a log that cannot be read. */
  onError(error: unknown): void
  time?: StreamTime
}

/** Small events are made ahead up to this. */
const BUFFER_BYTES = 64 * 1024

type Made = { events: string; last?: boolean }

export function eventStream(options: EventStreamOptions): Readable {
  const { process, streams, encoding, onError, time = systemTime } = options
  const offsets = { ...options.offsets }
  const cursors: Cursor[] = streams.map((name) => ({ name, log: process.logs[name], dirty: true }))
  const reading = { cursors, offsets, encoding }
  const reconnectAt = time.now() + LIMITS.streamReconnectMs
  let lastEventAt = time.now()
  /** The reader has room. */
  let wanted = false
  /** An event is being made. */
  let busy = false
  let ending = false
  let unwatch: (() => void)[] = []
  let cancelTimer: (() => void) | undefined

  const stream = new Readable({
    highWaterMark: BUFFER_BYTES,
    read() {
      wanted = true
      advance()
    },
    destroy(error, done) {
      stopWatching()
      forgetEnd()
      cancelTimer?.()
      done(error)
    },
  })
  const forgetEnd = onEnd(process, advance)

  const allDirty = () => {
    for (const cursor of cursors) cursor.dirty = true
  }
  const watch = () => {
    unwatch = cursors.map((cursor) =>
      cursor.log.watch(() => {
        cursor.dirty = true
        advance()
      }),
    )
    // What came before the watch was in place.
    allDirty()
  }
  function stopWatching() {
    for (const stop of unwatch) stop()
    unwatch = []
  }

  /** Makes events while there are any and the reader has room. Whoever has news calls it. */
  function advance(): void {
    if (busy) return
    busy = true
    try {
      while (wanted && !stream.destroyed) {
        const made = make()
        if (made === null) break
        if (made instanceof Promise) {
          made.then(goOn, fail)
          return
        }
        send(made)
      }
      busy = false
    } catch (error) {
      fail(error)
    }
  }
  const goOn = (made: Made) => {
    busy = false
    send(made)
    advance()
  }
  const fail = (error: unknown) => {
    onError(error)
    send({ events: encodeEvent('error', offsets, readFailure(error)), last: true })
  }
  function send({ events, last = false }: Made): void {
    if (stream.destroyed) return
    if (events !== '') {
      lastEventAt = time.now()
      wanted = stream.push(Buffer.from(events))
    }
    if (last) {
      wanted = false
      stream.push(null)
    }
    if (!wanted) stopWatching()
  }

  let make: () => Made | Promise<Made> | null = () => {
    make = next
    return attach()
  }
  async function attach(): Promise<Made> {
    for (const { name, log } of cursors) {
      if (offsets[name] > 0) offsets[name] = Math.min(offsets[name], await log.size())
    }
    return {
      events: encodeEvent('attached', offsets, { processId: process.processId, ...named(offsets) }),
    }
  }

  /** null: there is nothing to tell. */
  function next(): Made | Promise<Made> | null {
    for (;;) {
      if (time.now() >= reconnectAt)
        return { events: encodeEvent('reconnect', offsets, named(offsets)), last: true }
      // Before the reading: the logs of an ended process are complete.
      const { end } = process
      if (end !== null && !ending) {
        ending = true
        allDirty()
      }
      if (cursors.some(({ dirty }) => dirty)) {
        const events = end === null ? outputNow(reading) : null
        if (events === null) return nextOutput(reading, end !== null).then((events) => ({ events }))
        if (events !== '') return { events }
      } else if (end !== null) {
        return { events: encodeEvent('exit', offsets, exitData(end, offsets)), last: true }
      } else if (time.now() - lastEventAt >= LIMITS.streamHeartbeatMs) {
        // And a look at both, should the system have failed to tell of a change.
        allDirty()
        return { events: encodeEvent('heartbeat', offsets, {}) }
      } else if (unwatch.length === 0) {
        watch()
      } else {
        setTimer()
        return null
      }
    }
  }
  /** One timer at a time, also under thousands of events a second: it looks for itself whether it came too early. */
  function setTimer(): void {
    cancelTimer ??= time.after(
      Math.min(lastEventAt + LIMITS.streamHeartbeatMs, reconnectAt) - time.now(),
      () => {
        cancelTimer = undefined
        advance()
      },
    )
  }

  return stream
}

const named = ({ stdout, stderr }: Offsets) => ({ stdoutOffset: stdout, stderrOffset: stderr })

function exitData({ status, exitCode, signal }: ProcessEnd, offsets: Offsets): StreamEvents['exit'] {
  // The stream knows no timed_out: the time limit killed it.
  return { status: status === 'timed_out' ? 'killed' : status, exitCode, signal, ...named(offsets) }
}

function readFailure(error: unknown): StreamEvents['error'] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
    return { code: 'not_found', message: 'The output of this process is no longer kept.' }
  return { code: 'exec_failed', message: `The output cannot be read: ${String(error)}` }
}
