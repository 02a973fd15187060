// Measures the disk space that the files of a box use. A measurement reads the whole tree, so it runs rarely.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Logger } from 'pino'

export type DiskSpaceMeter = {
  /**
   * Starts a measurement if one is due, in the background.
   * @param writtenBytes what the box has written so far; null: unknown
   */
  update(writtenBytes: number | null): void
  /** The last result; null before the first one. */
  usedBytes(): number | null
  /** The process of a running measurement. */
  pid(): number | undefined
  /** Terminates a running measurement. */
  close(): Promise<void>
}

export type DiskSpaceOptions = {
  directories: readonly string[]
  log: Logger
  monotonicNow?: () => number
  /** Measures the directories in bytes. The tests replace it. */
  measure?: (directories: readonly string[], signal: AbortSignal) => Measurement
}
export type Measurement = { pid: number | undefined; result: Promise<number> }

/** A smaller amount, such as the agent's own reports, causes no measurement. */
const MIN_WRITTEN_BYTES = 1024 * 1024
/** The interval of measurements while at least MIN_WRITTEN_BYTES are written. */
const MIN_INTERVAL_MS = 60_000
/** The interval while less is written: files may have been deleted. */
const MAX_INTERVAL_MS = 15 * 60_000
/** A measurement takes at most 2 % of the time. */
const INTERVAL_PER_DURATION = 50
const TIMEOUT_MS = 10 * 60_000

export function createDiskSpaceMeter(options: DiskSpaceOptions): DiskSpaceMeter {
  const { directories, log, monotonicNow = () => performance.now(), measure = runDu } = options
  const closing = new AbortController()
  let usedBytes: number | null = null
  let last: { endedAt: number; durationMs: number; writtenBytes: number } | undefined
  let running: { pid: number | undefined; finished: Promise<void> } | undefined
  let isFailing = false

  function isDue(writtenBytes: number): boolean {
    if (last === undefined) return true
    const age = monotonicNow() - last.endedAt
    if (age < last.durationMs * INTERVAL_PER_DURATION) return false
    return age >= (writtenBytes - last.writtenBytes >= MIN_WRITTEN_BYTES ? MIN_INTERVAL_MS : MAX_INTERVAL_MS)
  }

  async function run(result: Promise<number>, writtenBytes: number): Promise<void> {
    const startedAt = monotonicNow()
    try {
      usedBytes = await result
      isFailing = false
    } catch (error) {
      if (closing.signal.aborted) return
      if (!isFailing) log.warn({ err: error }, 'failed to measure the disk space of the box; will retry')
      isFailing = true
    } finally {
      const endedAt = monotonicNow()
      last = { endedAt, durationMs: endedAt - startedAt, writtenBytes }
      running = undefined
    }
  }

  return {
    update(writtenBytes) {
      if (running !== undefined || closing.signal.aborted || !isDue(writtenBytes ?? 0)) return
      const { pid, result } = measure(directories, closing.signal)
      running = { pid, finished: run(result, writtenBytes ?? 0) }
    },
    usedBytes: () => usedBytes,
    pid: () => running?.pid,
    async close() {
      closing.abort()
      await running?.finished
    },
  }
}

/**
 * The allocated bytes: holes do not count, a file with several links counts once. Directories that the box user cannot
 * read are omitted, and so are deleted files that a process has open.
 */
function runDu(directories: readonly string[], signal: AbortSignal): Measurement {
  const args = ['-n', '19', 'du', '-skxc', '--', ...directories]
  const child = spawn('nice', args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    signal,
    timeout: TIMEOUT_MS,
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
  })
  return { pid: child.pid, result: readTotal(child) }
}

async function readTotal(child: ChildProcess): Promise<number> {
  let output = ''
  child.stdout?.setEncoding('latin1').on('data', (text: string) => {
    output += text
  })
  const [code, signal] = await once(child, 'close')
  const total = /(?:^|\n)(\d+)\ttotal\n$/.exec(output)?.[1]
  // du exits with 1 when it could not read some of the entries.
  if (total === undefined) throw new Error(`du exited with ${code ?? signal} and no total`)
  return Number(total) * 1024
}
