// Shows the processes of a box on the whole terminal until the user quits.
import type { Key } from 'node:readline'
import { poll } from '../lists/poll.ts'
import { CliError, EXIT, signalExitCode } from '../output/exit-codes.ts'
import { type FullScreen, openFullScreen } from '../terminal/full-screen.ts'
import { getTerminalSize } from '../terminal/local-terminal.ts'
import { formatScreen, type SortKey, type TopSample } from './format-top.ts'

export const INTERVAL_MS = 2000

const SIGINT = 2
/** The keys of top(1) work too: P, M and N. */
const SORT_KEY_OF_INPUT: Record<string, SortKey> = {
  c: 'cpu',
  P: 'cpu',
  m: 'memory',
  M: 'memory',
  p: 'pid',
  N: 'pid',
}

/**
 * Returns the exit code.
 * @param createLoader creates a function that sends the requests with the signal
 */
export async function runTop(
  createLoader: (signal: AbortSignal) => Promise<() => Promise<TopSample>>,
  { signal: interrupted, sort: initialSort }: { signal: AbortSignal; sort: SortKey },
): Promise<number> {
  const quit = new AbortController()
  const signal = AbortSignal.any([interrupted, quit.signal])
  let screen = null as FullScreen | null
  let sort = initialSort
  let message: string | null = null
  let sample: TopSample | null = null
  let exitCode: number = EXIT.ok

  const draw = () => {
    const { cols: columns, rows } = getTerminalSize() ?? { cols: 80, rows: 24 }
    if (sample !== null) screen?.draw(formatScreen(sample, { sort, message, columns, rows }))
  }
  const onKey = ({ name, ctrl, sequence = '' }: Key) => {
    const isInterrupt = ctrl === true && name === 'c'
    if (isInterrupt) exitCode = signalExitCode(SIGINT)
    if (isInterrupt || name === 'q' || name === 'escape') return quit.abort()
    sort = SORT_KEY_OF_INPUT[sequence] ?? sort
    draw()
  }

  try {
    return await poll({
      signal,
      intervalMs: INTERVAL_MS,
      request: await createLoader(signal),
      onResult(result) {
        sample = result
        message = null
        // An error of the first request is printed without the alternate screen.
        screen ??= openFullScreen(onKey, draw)
        draw()
      },
      onOutage(reason) {
        // The end of the reason may be truncated.
        message = `retrying. ${reason}`
        draw()
      },
    })
  } catch (error) {
    if (quit.signal.aborted && !(error instanceof CliError)) return exitCode
    throw error
  } finally {
    screen?.close()
  }
}
