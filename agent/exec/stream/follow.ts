// One reader of a detached process: a cursor on each log, moved on as fast as its events are taken.
import type { DetachedProcess, ProcessEnd, StreamName } from '../detached/types.ts'
import { type Encoding, encodeEvent, encodeOutput, type Offsets } from './events.ts'
import { onEnd } from './on-end.ts'

export type FollowOptions = {
  from: Offsets
  streams: readonly StreamName[]
  encoding: Encoding
  /** After so many ms without an event there is a heartbeat, and after so many in all the reader has to come back. */
  heartbeatMs: number
  reconnectMs: number
  /** Ends it without a word. */
  signal: AbortSignal
  /** Told of what ends it with an `error` event: a log that cannot be read. */
  onError(error: unknown): void
}

/** Of one log at a time, so that the other one gets its turn. */
const READ_BYTES = 128 * 1024

/**
 * The events of the stream, some at a time. Nothing is read ahead of who takes them: a reader that stalls holds what
 * was read last and nothing more.
 */
export async function* followProcess(
  process: DetachedProcess,
  options: FollowOptions,
): AsyncGenerator<string, void, undefined> {
  const { streams, encoding, heartbeatMs, reconnectMs, signal } = options
  const changes = watchChanges(process, streams, signal)
  let at = options.from
  try {
    at = await withinLogs(process, options)
    const reconnectAt = performance.now() + reconnectMs
    let heartbeatAt = performance.now() + heartbeatMs
    yield encodeEvent('attached', at, { processId: process.processId, ...named(at) })
    while (!signal.aborted) {
      changes.seen()
      // Asked before the logs are read: once it has ended they are complete.
      const { end } = process
      let sent = false
      for (const name of streams) {
        const found = await process.logs[name].read(at[name], READ_BYTES)
        const last = end !== null && found.bytes.length < READ_BYTES
        const { text, after } = encodeOutput(name, found, at, { encoding, last })
        if (text === '') continue
        at = after
        sent = true
        yield text
      }
      const now = performance.now()
      if (now >= reconnectAt) return yield encodeEvent('reconnect', at, named(at))
      if (sent) {
        heartbeatAt = now + heartbeatMs
        continue
      }
      if (end !== null) return yield encodeEvent('exit', at, { ...howItEnded(end), ...named(at) })
      if (now >= heartbeatAt) {
        heartbeatAt = now + heartbeatMs
        yield encodeEvent('heartbeat', at, {})
      }
      await changes.next(Math.min(heartbeatAt, reconnectAt) - performance.now())
    }
  } catch (error) {
    options.onError(error)
    const message = error instanceof Error ? error.message : String(error)
    yield encodeEvent('error', at, { code: 'exec_failed', message })
  } finally {
    changes.close()
  }
}

const named = (at: Offsets) => ({ stdoutOffset: at.stdout, stderrOffset: at.stderr })

/** An offset behind the end of what was written counts as the end, and one that is no longer kept as the first that is. */
async function withinLogs({ logs }: DetachedProcess, { from, streams }: FollowOptions): Promise<Offsets> {
  const at = { ...from }
  for (const name of streams) {
    const size = await logs[name].size()
    at[name] = Math.max(logs[name].head(), Math.min(from[name], size))
  }
  return at
}

function howItEnded({ status, exitCode, signal }: ProcessEnd) {
  return { status: status === 'timed_out' ? ('killed' as const) : status, exitCode, signal }
}

/** Tells of changes one at a time; one that comes while nobody waits is not lost. */
function watchChanges(process: DetachedProcess, streams: readonly StreamName[], signal: AbortSignal) {
  let changed = false
  let wake: (() => void) | undefined
  const onChange = () => {
    changed = true
    wake?.()
  }
  const stops = [...streams.map((name) => process.logs[name].watch(onChange)), onEnd(process, onChange)]
  signal.addEventListener('abort', onChange, { once: true })
  return {
    /** What has changed until now is about to be looked at. */
    seen() {
      changed = false
    },
    /** Resolves at the next change since `seen`, and after `ms` at the latest. */
    async next(ms: number) {
      if (changed || signal.aborted) return
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        wake = resolve
        timer = setTimeout(resolve, Math.max(0, ms))
      })
      clearTimeout(timer)
      wake = undefined
    },
    close() {
      for (const stop of stops) stop()
      signal.removeEventListener('abort', onChange)
    },
  }
}
