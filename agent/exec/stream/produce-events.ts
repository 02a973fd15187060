// The output of a detached process as events (spec §4.14), made when the reader asks for them. All that a reader has is
// its place in the two logs: one that stalls costs what it was sent last, and nothing more is read or watched for it.
import { namedOffsets, type Offsets, type StreamEvents } from '../../../shared/api/processes.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { Sink, Source } from '../../tunnel/stream-dialer.ts'
import type { DetachedProcess, ProcessEnd, StreamName } from '../detached/types.ts'
import { type Cursor, nextOutput, outputNow } from './cursor.ts'
import { type Encoding, encodeEvent } from './event.ts'
import { onEnd } from './on-end.ts'
import { type StreamTime, systemTime } from './time.ts'

export type EventOptions = {
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

type Made = { events: Buffer; last?: boolean }

export function produceEvents(options: EventOptions, sink: Sink): Source {
  const { process, streams, encoding, onError, time = systemTime } = options
  const offsets = { ...options.offsets }
  const cursors: Cursor[] = streams.map((name) => ({ name, log: process.logs[name], dirty: true }))
  const reading = { cursors, offsets, encoding }
  /** The reader has to come back. */
  let over = false
  let lastEventAt = time.now()
  let heartbeatDue = false
  /** The reader has room. */
  let wanted = false
  /** An event is being made. */
  let busy = false
  let ending = false
  let stopped = false
  let unwatch: (() => void)[] = []
  let cancelHeartbeat: (() => void) | undefined

  const forgetEnd = onEnd(process, advance)
  const cancelLife = time.after(LIMITS.streamReconnectMs, () => {
    over = true
    advance()
  })

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
      while (wanted && !stopped) {
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
    if (stopped) return
    if (events.length > 0) {
      lastEventAt = time.now()
      heartbeatDue = false
      wanted = sink.push(events)
    }
    if (last) {
      wanted = false
      sink.end()
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
      events: encodeEvent('attached', offsets, { processId: process.processId, ...namedOffsets(offsets) }),
    }
  }

  /** null: there is nothing to tell. */
  function next(): Made | Promise<Made> | null {
    for (;;) {
      if (over) return { events: encodeEvent('reconnect', offsets, namedOffsets(offsets)), last: true }
      // Before the reading: the logs of an ended process are complete.
      const { end } = process
      if (end !== null && !ending) {
        ending = true
        allDirty()
      }
      if (cursors.some(({ dirty }) => dirty)) {
        const events = end === null ? outputNow(reading) : null
        if (events === null) return nextOutput(reading, end !== null).then((events) => ({ events }))
        if (events.length > 0) return { events }
      } else if (end !== null) {
        return { events: encodeEvent('exit', offsets, exitData(end, offsets)), last: true }
      } else if (heartbeatDue) {
        // And a look at both, should the system have failed to tell of a change.
        allDirty()
        return { events: encodeEvent('heartbeat', offsets, {}) }
      } else if (unwatch.length === 0) {
        watch()
      } else {
        awaitHeartbeat()
        return null
      }
    }
  }
  /** One timer at a time, also under thousands of events a second: it looks for itself whether it came too early. */
  function awaitHeartbeat(): void {
    cancelHeartbeat ??= time.after(lastEventAt + LIMITS.streamHeartbeatMs - time.now(), () => {
      cancelHeartbeat = undefined
      heartbeatDue = time.now() - lastEventAt >= LIMITS.streamHeartbeatMs
      advance()
    })
  }

  return {
    more() {
      wanted = true
      advance()
    },
    stop() {
      stopped = true
      stopWatching()
      forgetEnd()
      cancelLife()
      cancelHeartbeat?.()
    },
  }
}

function exitData({ status, exitCode, signal }: ProcessEnd, offsets: Offsets): StreamEvents['exit'] {
  // The stream knows no timed_out: the time limit killed it.
  return { status: status === 'timed_out' ? 'killed' : status, exitCode, signal, ...namedOffsets(offsets) }
}

function readFailure(error: unknown): StreamEvents['error'] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
    return { code: 'not_found', message: 'The output of this process is no longer kept.' }
  return { code: 'exec_failed', message: `The output cannot be read: ${String(error)}` }
}
