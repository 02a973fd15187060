// The output of a detached process as events (spec §4.14), made when the reader asks for them. All that a reader has is
// its place in the two logs: one that stalls costs what it was sent last, and nothing more is read or watched for it.
import { Readable } from 'node:stream'
import type { StreamEvents } from '../../../shared/api/processes.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { DetachedProcess, ProcessEnd, StreamName } from '../detached/types.ts'
import { type Cursor, nextOutput } from './cursor.ts'
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

export function eventStream(options: EventStreamOptions): Readable {
  const { process, streams, encoding, onError, time = systemTime } = options
  const offsets = { ...options.offsets }
  const cursors: Cursor[] = streams.map((name) => ({ name, log: process.logs[name], dirty: true }))
  const reconnectAt = time.now() + LIMITS.streamReconnectMs
  let lastEventAt = time.now()
  let attached = false
  let ending = false
  let unwatch: (() => void)[] = []
  let cancelTimer: (() => void) | undefined
  let wake: (() => void) | undefined

  const stream = new Readable({
    highWaterMark: BUFFER_BYTES,
    read() {
      produce().then(send, (error: unknown) => {
        onError(error)
        send({ events: encodeEvent('error', offsets, readFailure(error)), last: true })
      })
    },
    destroy(error, done) {
      stopWatching()
      forgetEnd()
      cancelTimer?.()
      wake?.()
      done(error)
    },
  })
  const forgetEnd = onEnd(process, () => wake?.())

  const send = ({ events, last = false }: { events: string; last?: boolean }) => {
    if (stream.destroyed) return
    lastEventAt = time.now()
    const wanted = stream.push(Buffer.from(events))
    if (last) stream.push(null)
    else if (!wanted) stopWatching()
  }
  const allDirty = () => {
    for (const cursor of cursors) cursor.dirty = true
  }
  const watch = () => {
    unwatch = cursors.map((cursor) =>
      cursor.log.watch(() => {
        cursor.dirty = true
        wake?.()
      }),
    )
    // What came before the watch was in place.
    allDirty()
  }
  function stopWatching() {
    for (const stop of unwatch) stop()
    unwatch = []
  }
  /** Until there may be something to send. */
  const idle = () =>
    new Promise<void>((resolve) => {
      wake = () => {
        wake = undefined
        resolve()
      }
      // One timer at a time, also under thousands of events a second: it looks for itself whether it came too early.
      cancelTimer ??= time.after(
        Math.min(lastEventAt + LIMITS.streamHeartbeatMs, reconnectAt) - time.now(),
        () => {
          cancelTimer = undefined
          wake?.()
        },
      )
    })

  async function attach(): Promise<string> {
    attached = true
    for (const { name, log } of cursors) {
      if (offsets[name] > 0) offsets[name] = Math.min(offsets[name], await log.size())
    }
    return encodeEvent('attached', offsets, { processId: process.processId, ...named(offsets) })
  }

  async function produce(): Promise<{ events: string; last?: boolean }> {
    if (!attached) return { events: await attach() }
    while (!stream.destroyed) {
      if (time.now() >= reconnectAt)
        return { events: encodeEvent('reconnect', offsets, named(offsets)), last: true }
      // Before the reading: the logs of an ended process are complete.
      const { end } = process
      if (end !== null && !ending) {
        ending = true
        allDirty()
      }
      const events = await nextOutput(cursors, offsets, encoding, end !== null)
      if (events !== '' || stream.destroyed) return { events }
      if (cursors.some(({ dirty }) => dirty)) continue
      if (end !== null) return { events: encodeEvent('exit', offsets, exitData(end, offsets)), last: true }
      if (time.now() - lastEventAt >= LIMITS.streamHeartbeatMs) {
        // And a look at both, should the system have failed to tell of a change.
        allDirty()
        return { events: encodeEvent('heartbeat', offsets, {}) }
      }
      if (unwatch.length === 0) watch()
      else if (process.end === null) await idle()
    }
    return { events: '' }
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
