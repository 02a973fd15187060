// Reads the output of a command until it has exited, the answer is full, or the time is over.

import type { Box } from '../../client/boxes/box.ts'
import type { Offsets } from '../../client/boxes/output.ts'
import { cleanOutput } from '../text/clean.ts'
import { TEXT_BYTES } from '../text/fit.ts'
import { waitAtMost } from '../wait-at-most.ts'
import { StreamBuffer } from './stream-buffer.ts'

export type ReadOptions = {
  waitMs: number
  signal: AbortSignal
  /** Where a page begins. Default: the first and the last part of the whole output. */
  from?: Offsets | undefined
  /** Gets what to show to a person: at once, and then regularly. */
  reportProgress?: ((message: string) => void) | undefined
}

export type Output = {
  status: 'running' | 'exited' | 'killed' | 'lost'
  exitCode: number | null
  signal: string | null
  timedOut: boolean
  stdout: string
  stderr: string
  omitted: { stream: 'stdout' | 'stderr'; offset: number; bytes: number }[]
  nextOffset: Offsets
  /** The command runs, or there may be output after `nextOffset`. */
  more: boolean
}

const STREAMS = ['stdout', 'stderr'] as const
/** Between two reports of progress. */
const PROGRESS_MS = 2_000
/** A page is full: the rest of the text that was read would not fit. */
const FULL_PAGE_BYTES = 2 * TEXT_BYTES

/** Rejects with the reason of the signal when it is aborted. */
export async function readProcess(box: Box, processId: string, options: ReadOptions): Promise<Output> {
  const { waitMs, signal, from, reportProgress } = options
  const start = from ?? { stdout: 0, stderr: 0 }
  const buffers = { stdout: new StreamBuffer(start.stdout), stderr: new StreamBuffer(start.stderr) }
  const report = () =>
    reportProgress?.(
      `The command ${processId} is running on box ${box.name}. Output: ${buffers.stdout.end + buffers.stderr.end} bytes.`,
    )
  report()
  const reports = reportProgress && setInterval(report, PROGRESS_MS)
  const exit = await waitAtMost(waitMs, signal, async (limited) => {
    const output = box.process(processId).output({ from: start, signal: limited })
    for (;;) {
      const next = await output.next()
      if (next.done) return next.value
      const { stream, bytes, missing } = next.value
      buffers[stream].add(bytes, missing)
      if (from === undefined || buffers[stream].length < FULL_PAGE_BYTES) continue
      await output.return(undefined as never)
      return null
    }
  }).finally(() => clearInterval(reports))
  const state = exit ?? (await readState(box, processId, signal))
  const output = from === undefined ? toExcerpts(buffers, state) : toPage(buffers, state)
  return { ...output, more: output.more || exit === null }
}

type State = Pick<Output, 'status' | 'exitCode' | 'signal' | 'timedOut'>

async function readState(box: Box, processId: string, signal: AbortSignal): Promise<State> {
  const {
    running,
    lost,
    exitCode,
    signal: exitSignal,
    timedOut,
  } = await box.process(processId).status({ tail: 0 }, { signal })
  const status = running ? 'running' : lost ? 'lost' : exitCode === null ? 'killed' : 'exited'
  return { status, exitCode, signal: exitSignal, timedOut }
}

type Buffers = Record<'stdout' | 'stderr', StreamBuffer>

const pickState = ({ status, exitCode, signal, timedOut }: State): State => ({
  status,
  exitCode,
  signal,
  timedOut,
})

/** A stream gets what the other one does not need, and at least half. */
function share(buffers: Buffers): Record<'stdout' | 'stderr', number> {
  const half = TEXT_BYTES / 2
  const { stdout, stderr } = {
    stdout: buffers.stdout.measure(cleanOutput),
    stderr: buffers.stderr.measure(cleanOutput),
  }
  return {
    stdout: Math.max(half, TEXT_BYTES - stderr),
    stderr: Math.max(half, TEXT_BYTES - stdout),
  }
}

function toExcerpts(buffers: Buffers, state: State): Output {
  const budgets = share(buffers)
  const stdout = buffers.stdout.getExcerpt(budgets.stdout, cleanOutput)
  const stderr = buffers.stderr.getExcerpt(budgets.stderr, cleanOutput)
  const excerpts = { stdout, stderr }
  return {
    ...pickState(state),
    stdout: stdout.text,
    stderr: stderr.text,
    omitted: STREAMS.flatMap((stream) => {
      const { omitted } = excerpts[stream]
      return omitted === null ? [] : [{ stream, ...omitted }]
    }),
    nextOffset: { stdout: buffers.stdout.end, stderr: buffers.stderr.end },
    more: false,
  }
}

function toPage(buffers: Buffers, state: State): Output {
  const budgets = share(buffers)
  const stdout = buffers.stdout.getPage(budgets.stdout, cleanOutput)
  const stderr = buffers.stderr.getPage(budgets.stderr, cleanOutput)
  const nextOffset = { stdout: stdout.nextOffset, stderr: stderr.nextOffset }
  return {
    ...pickState(state),
    stdout: stdout.text,
    stderr: stderr.text,
    omitted: STREAMS.flatMap((stream) => {
      const { missing, from: offset } = buffers[stream]
      return missing === 0 ? [] : [{ stream, offset, bytes: missing }]
    }),
    nextOffset,
    more: STREAMS.some((stream) => nextOffset[stream] < buffers[stream].end),
  }
}
