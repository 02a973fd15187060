// Shows the layers of a download on stderr: one bar for each on a terminal, else a line for each change of a layer.
import type { MultiBar, SingleBar } from 'cli-progress'
import type { PullProgress } from '../../shared/api/images.ts'
import { formatBytes } from '../output/format.ts'
import { printStderr, sanitize } from '../output/print.ts'
import { hasStatusLine } from '../output/status-line.ts'

export type Layer = PullProgress['layers'][number]

export type PullDisplay = { update(progress: PullProgress): void; stop(): void }

const ID_LENGTH = 12
const BAR_WIDTH = 24
/** More layers than a terminal has lines would scroll: the others are counted. */
const MAX_BARS = 20
const RENDERS_PER_SECOND = 8

/** A layer whose size is not known has no bar. */
export function formatLayer({ id, status, currentBytes, totalBytes }: Layer): string {
  const parts = [sanitize(id).slice(0, ID_LENGTH).padEnd(ID_LENGTH), status.padEnd('downloading'.length)]
  if (status === 'waiting') return parts.join('  ').trimEnd()
  if (status !== 'complete' && totalBytes !== null && totalBytes > 0) {
    const fraction = Math.min(1, currentBytes / totalBytes)
    parts.push('█'.repeat(Math.round(fraction * BAR_WIDTH)).padEnd(BAR_WIDTH, '░'))
    parts.push(`${formatBytes(currentBytes)} of ${formatBytes(totalBytes)}`)
  } else if (totalBytes ?? currentBytes) parts.push(formatBytes(totalBytes ?? currentBytes))
  return parts.join('  ').trimEnd()
}

const NONE: PullDisplay = { update: () => undefined, stop: () => undefined }

export async function createPullDisplay(isQuiet: boolean): Promise<PullDisplay> {
  if (isQuiet) return NONE
  return hasStatusLine() ? createBars() : createLines()
}

function createLines(): PullDisplay {
  const printed = new Map<string, Layer['status']>()
  return {
    update({ layers }) {
      for (const layer of layers) {
        if (layer.status === 'waiting' || printed.get(layer.id) === layer.status) continue
        printed.set(layer.id, layer.status)
        const size = layer.totalBytes ?? layer.currentBytes
        const text = size > 0 ? `${layer.status}, ${formatBytes(size)}` : layer.status
        printStderr(`${sanitize(layer.id).slice(0, ID_LENGTH)}: ${text}`)
      }
    },
    stop: () => undefined,
  }
}

async function createBars(): Promise<PullDisplay> {
  const { MultiBar } = await import('cli-progress')
  const multi: MultiBar = new MultiBar({
    stream: process.stderr,
    hideCursor: true,
    fps: RENDERS_PER_SECOND,
    clearOnComplete: true,
    // The library's own signal handler would exit before the command has closed its connection.
    gracefulExit: false,
    format: (_options, _parameters, { text }) => text,
  })
  let isStopped = false
  const bars: SingleBar[] = []
  const setText = (index: number, text: string) => {
    const bar = bars[index]
    if (bar === undefined) bars[index] = multi.create(1, 0, { text })
    else bar.update(0, { text })
  }
  return {
    update({ layers }) {
      const shown = layers.slice(0, MAX_BARS)
      for (const [index, layer] of shown.entries()) setText(index, formatLayer(layer))
      const rest = layers.slice(MAX_BARS)
      if (rest.length > 0) {
        const complete = rest.filter(({ status }) => status === 'complete').length
        setText(MAX_BARS, `and ${rest.length} more layers, ${complete} complete`)
      }
    },
    stop() {
      if (!isStopped) multi.stop()
      isStopped = true
    },
  }
}
