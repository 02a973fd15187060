// A process whose logs are in memory and whose time stands still until it is told to go on.
import type { Readable } from 'node:stream'
import type {
  DetachedProcess,
  OutputLog,
  ProcessEnd,
  StreamName,
} from '../../../../agent/exec/detached/types.ts'
import type { StreamTime } from '../../../../agent/exec/stream/time.ts'

/** What is as close to the end is read without waiting. */
const NEAR_BYTES = 1000

/** A log that gives up its head beyond `keep` bytes. */
function memoryLog(keep: number) {
  let bytes = Buffer.alloc(0)
  const watchers = new Set<() => void>()
  const head = () => Math.max(0, bytes.length - keep)
  let failure: Error | undefined
  const readNow = (from: number, max: number) => {
    if (failure) throw failure
    const offset = Math.max(from, head())
    return { offset, bytes: bytes.subarray(offset, offset + max) }
  }
  const log: OutputLog = {
    path: '/memory',
    head,
    size: async () => bytes.length,
    read: async (from, max) => readNow(from, max),
    // As on a disk: only near the end, and never of what lies further back.
    readNow: (from, max) => (bytes.length - from < NEAR_BYTES ? readNow(from, max) : null),
    watch(onChange) {
      const watcher = () => onChange()
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
  }
  return {
    log,
    watchers: () => watchers.size,
    /** Quietly: as if the system had lost the notification. */
    append(more: string | Uint8Array, quietly = false) {
      bytes = Buffer.concat([bytes, Buffer.from(more)])
      if (!quietly) for (const watcher of [...watchers]) watcher()
    },
    fail(error: Error) {
      failure = error
      for (const watcher of [...watchers]) watcher()
    },
  }
}

export function memoryProcess({ keep = Number.MAX_SAFE_INTEGER } = {}) {
  const ended = Promise.withResolvers<ProcessEnd>()
  const stdout = memoryLog(keep)
  const stderr = memoryLog(keep)
  let end: ProcessEnd | null = null
  const process: DetachedProcess = {
    processId: 'p_0123456789abcdef01234567',
    pid: 1,
    command: 'true',
    cwd: '~',
    startedAt: 0,
    record: null,
    folder: '/memory',
    logs: { stdout: stdout.log, stderr: stderr.log },
    get end() {
      return end
    },
    ended: ended.promise,
  }
  return {
    process,
    stdout,
    stderr,
    end(how: Partial<ProcessEnd> = {}) {
      end = { status: 'exited', exitCode: 0, signal: null, finishedAt: 0, ...how }
      ended.resolve(end)
    },
  }
}

export function stillTime() {
  let now = 0
  const due = new Map<() => void, number>()
  const time: StreamTime = {
    now: () => now,
    after(ms, callback) {
      const timer = () => callback()
      due.set(timer, now + ms)
      return () => due.delete(timer)
    },
  }
  return {
    time,
    timers: () => due.size,
    pass(ms: number) {
      now += ms
      for (const [timer, at] of [...due]) {
        if (at > now) continue
        due.delete(timer)
        timer()
      }
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: what a client parses is whatever was sent.
export type ParsedEvent = { id: string; event: string; data: any }

export function parseEvents(text: string): ParsedEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const fields = Object.fromEntries(
        block.split('\n').map((line) => {
          const colon = line.indexOf(': ')
          return [line.slice(0, colon), line.slice(colon + 2)]
        }),
      )
      return { id: fields.id ?? '', event: fields.event ?? '', data: JSON.parse(fields.data ?? '') }
    })
}

export async function allEvents(stream: Readable): Promise<ParsedEvent[]> {
  return parseEvents(Buffer.concat(await stream.toArray()).toString('utf8'))
}

/** One event after the other, as they come. */
export function eventReader(stream: Readable) {
  const chunks = stream[Symbol.asyncIterator]()
  const queue: ParsedEvent[] = []
  return {
    async next(): Promise<ParsedEvent | undefined> {
      while (queue.length === 0) {
        const { done, value } = await chunks.next()
        if (done) return undefined
        queue.push(...parseEvents(value.toString('utf8')))
      }
      return queue.shift()
    },
  }
}

/** The bytes of one stream as its events tell them, each where the one before ended. */
export function outputOf(
  events: readonly ParsedEvent[],
  name: StreamName,
  from = 0,
): { text: string; nextOffset: number } {
  let text = ''
  let nextOffset = from
  for (const { event, data } of events) {
    if (event !== name) continue
    if (data.offset !== nextOffset) throw new Error(`${name} goes on at ${data.offset}, not at ${nextOffset}`)
    text += data.data
    nextOffset = data.nextOffset
  }
  return { text, nextOffset }
}

/** How many readers of a log are told of changes now. To be called before there are any. */
export function countWatches(log: OutputLog): () => number {
  let watching = 0
  const { watch } = log
  log.watch = (onChange) => {
    watching += 1
    const stop = watch(onChange)
    return () => {
      watching -= 1
      stop()
    }
  }
  return () => watching
}
