// The progress of a copy on stderr: files, bytes, speed and remaining time. Shown only on a terminal that can move the cursor.
import type { SingleBar } from 'cli-progress'
import { formatBytes, formatDuration } from '../output/format.ts'
import { printMessage, sanitize } from '../output/print.ts'
import type { Totals } from './content.ts'

export type Progress = {
  /** false: nothing is shown, and nothing needs to be counted. */
  readonly isShown: boolean
  /** The source that is being copied. */
  setLabel(label: string): void
  addTotal(totals: Totals): void
  /** A source whose size is unknown: no total is shown. */
  addUnknownTotal(): void
  addBytes(count: number): void
  addFile(): void
  /** Prints a message above the bar. */
  print(message: string): void
  stop(): void
}

const RENDERS_PER_SECOND = 8
const BAR_WIDTH = 24
/** The remaining time is shown after this delay: an earlier estimate would be inaccurate. */
const ETA_DELAY_SECONDS = 1

export type ProgressState = {
  label: string
  files: number
  bytes: number
  /** null: unknown. */
  totals: Totals | null
  seconds: number
}

/** Without a total there is no bar and no remaining time. A single file is not counted. */
export function formatProgress({ label, files, bytes, totals, seconds }: ProgressState): string {
  const speed = bytes / Math.max(0.001, seconds)
  const parts: string[] = [label]
  if (totals === null) {
    if (files > 1) parts.push(`${files} files`)
    parts.push(formatBytes(bytes))
  } else {
    const fraction =
      totals.bytes > 0 ? Math.min(1, bytes / totals.bytes) : Math.min(1, files / Math.max(1, totals.files))
    parts.push(
      '█'.repeat(Math.round(fraction * BAR_WIDTH)).padEnd(BAR_WIDTH, '░'),
      `${Math.floor(fraction * 100)}%`,
    )
    if (totals.files > 1) parts.push(`${files} of ${totals.files} files`)
    parts.push(`${formatBytes(bytes)} of ${formatBytes(totals.bytes)}`)
  }
  parts.push(`${formatBytes(Math.round(speed))}/s`)
  const remaining = totals === null ? 0 : totals.bytes - bytes
  if (remaining > 0 && speed > 0 && seconds >= ETA_DELAY_SECONDS)
    parts.push(`ETA ${formatDuration(Math.ceil(remaining / speed) * 1000).replace(/\.0s$/, 's')}`)
  return parts.join('  ')
}

export async function createProgress(isQuiet: boolean): Promise<Progress> {
  if (isQuiet || !process.stderr.isTTY || process.env.TERM === 'dumb') return createHiddenProgress()
  const { SingleBar } = await import('cli-progress')
  const state = { label: '', files: 0, bytes: 0, totals: { files: 0, bytes: 0 } as Totals | null }
  let startTime = 0
  let bar: SingleBar | null = null
  const start = () => {
    if (bar !== null) return
    startTime = Date.now()
    bar = new SingleBar({
      stream: process.stderr,
      hideCursor: true,
      fps: RENDERS_PER_SECOND,
      // The library's own signal handler would exit before the command has removed its partial files.
      gracefulExit: false,
      format: () => formatProgress({ ...state, seconds: (Date.now() - startTime) / 1000 }),
    })
    bar.start(1, 0)
  }
  return {
    isShown: true,
    setLabel(label) {
      state.label = sanitize(label)
    },
    addTotal({ files, bytes }) {
      if (state.totals === null) return
      state.totals.files += files
      state.totals.bytes += bytes
    },
    addUnknownTotal() {
      state.totals = null
    },
    addBytes(count) {
      start()
      state.bytes += count
    },
    addFile() {
      start()
      state.files++
    },
    print(message) {
      if (bar !== null) process.stderr.write('\r\u001b[K')
      printMessage(message)
    },
    stop() {
      bar?.stop()
      bar = null
    },
  }
}

function createHiddenProgress(): Progress {
  const ignore = () => undefined
  return {
    isShown: false,
    setLabel: ignore,
    addTotal: ignore,
    addUnknownTotal: ignore,
    addBytes: ignore,
    addFile: ignore,
    print: printMessage,
    stop: ignore,
  }
}
