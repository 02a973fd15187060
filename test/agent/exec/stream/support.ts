// Fakes and readers for tests of output streams.
import type {
  DetachedProcess,
  OutputLog,
  ProcessExit,
  StreamName,
} from '../../../../agent/exec/detached/types.ts'
import { type StreamOptions, streamFrames } from '../../../../agent/exec/stream/frames.ts'
import { isOutput, type OutputFrame, type StreamFrame } from '../../../../shared/stream-frames.ts'

/** An in-memory log that discards its head beyond `maxBytes`. */
function createMemoryLog(maxBytes: number, openTimes: OutputLog['openTimes']) {
  let bytes = Buffer.alloc(0)
  const watchers = new Set<() => void>()
  let failure: Error | undefined
  const log: OutputLog = {
    path: '/memory',
    size: async () => bytes.length,
    async read(from, max) {
      if (failure) throw failure
      const offset = Math.max(from, bytes.length - maxBytes)
      return { offset, bytes: bytes.subarray(offset, offset + max) }
    },
    openTimes,
    watch(onChange) {
      const watcher = () => onChange()
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
  }
  const notify = () => {
    for (const watcher of [...watchers]) watcher()
  }
  return {
    log,
    watchers: () => watchers.size,
    append(more: string | Uint8Array) {
      bytes = Buffer.concat([bytes, Buffer.from(more)])
      notify()
    },
    /** As if inotify had lost the change. */
    appendSilently(more: string) {
      bytes = Buffer.concat([bytes, Buffer.from(more)])
    },
    fail(error: Error) {
      failure = error
      notify()
    },
  }
}

type MemoryOptions = { maxBytes?: number; openTimes?: OutputLog['openTimes'] }

/** A process with in-memory logs. Both have the times of `openTimes`. */
export function createMemoryProcess({
  maxBytes = Number.MAX_SAFE_INTEGER,
  openTimes = () => null,
}: MemoryOptions = {}) {
  const stdout = createMemoryLog(maxBytes, openTimes)
  const stderr = createMemoryLog(maxBytes, openTimes)
  const listeners = new Set<() => void>()
  let exit: ProcessExit | null = null
  const process: DetachedProcess = {
    processId: 'p_0123456789abcdef01234567',
    pid: 1,
    command: 'true',
    cwd: '~',
    startedAt: 0,
    record: null,
    dir: '/memory',
    attached: null,
    logs: { stdout: stdout.log, stderr: stderr.log },
    get exit() {
      return exit
    },
    onExit(callback) {
      const listener = () => callback()
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return {
    process,
    stdout,
    stderr,
    exitListeners: () => listeners.size,
    exit(result: Partial<ProcessExit> = {}) {
      exit = { status: 'exited', exitCode: 0, signal: null, finishedAt: 0, ...result }
      for (const listener of [...listeners]) listener()
    },
  }
}

/** A clock that the test advances. */
export function createFakeTime() {
  let now = 0
  const timers = new Map<() => void, number>()
  return {
    time: {
      now: () => now,
      after(ms: number, callback: () => void) {
        const timer = () => callback()
        timers.set(timer, now + ms)
        return () => timers.delete(timer)
      },
    },
    timers: () => timers.size,
    advance(ms: number) {
      now += ms
      for (const [timer, at] of [...timers]) {
        if (at > now) continue
        timers.delete(timer)
        timer()
      }
    },
  }
}

/** Opens the frames of a process. `next()` resolves with undefined at the end. */
export function openFrames(process: DetachedProcess, options: Partial<StreamOptions> = {}) {
  const abort = new AbortController()
  const frames = streamFrames(
    {
      detachedProcess: process,
      offsets: { stdout: 0, stderr: 0 },
      streams: ['stdout', 'stderr'],
      encoding: 'utf8',
      onError: () => undefined,
      ...options,
    },
    abort.signal,
  )
  return {
    frames,
    async next(): Promise<StreamFrame | undefined> {
      const { done, value } = await frames.next()
      return done ? undefined : value
    },
    /** Closes the stream, as a disconnected reader does. */
    async close() {
      abort.abort()
      await frames.return()
    },
  }
}

export async function readAllFrames(
  process: DetachedProcess,
  options: Partial<StreamOptions> = {},
): Promise<StreamFrame[]> {
  return collect(openFrames(process, options).frames)
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

/** Concatenates the output of one stream. Throws when a frame does not continue where the previous one ended. */
export function joinOutput(frames: readonly StreamFrame[], name: StreamName, from = 0) {
  let offset = from
  const chunks: Buffer[] = []
  for (const frame of frames) {
    if (!isOutput(frame) || frame.event !== name) continue
    if (startOf(frame) !== offset) throw new Error(`${name} continues at ${startOf(frame)}, not at ${offset}`)
    offset += frame.bytes.length
    chunks.push(frame.bytes)
  }
  return { text: Buffer.concat(chunks).toString(), offset }
}

/** The offset of the frame's first byte. */
export const startOf = (frame: OutputFrame): number => frame[`${frame.event}Offset`] - frame.bytes.length

/** Counts the subscriptions to a log. To be called before the first one. */
export function countWatchers(log: OutputLog): () => number {
  let watchers = 0
  const { watch } = log
  log.watch = (onChange) => {
    watchers += 1
    const stop = watch(onChange)
    return () => {
      watchers -= 1
      stop()
    }
  }
  return () => watchers
}
