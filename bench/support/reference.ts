// What this machine takes for the parts of which starts and copies consist, and whether other programs disturb the measurement.
import { execFile } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { promisify } from 'node:util'
import { measureDuration } from './stats.ts'

const run = promisify(execFile)
const PAGE_BYTES = 4096
const TOUCHED_BYTES = 64 * 1024 ** 2

/** In milliseconds, apart from `pageTouch`, which is in microseconds. */
export type Reference = { node: number; spawn: number; pageTouch: number }

/** One sample of each. `spawn`: a program that does nothing, by posix_spawn of this process. */
export async function measureReference(): Promise<Reference> {
  const node = await measureDuration(() => run(process.execPath, ['-e', '']))
  const spawn = await measureDuration(() => run('true'))
  const touch = await measureDuration(async () => {
    const bytes = Buffer.allocUnsafeSlow(TOUCHED_BYTES)
    for (let offset = 0; offset < bytes.length; offset += PAGE_BYTES) bytes[offset] = 1
  })
  return { node, spawn, pageTouch: (touch * 1000) / (TOUCHED_BYTES / PAGE_BYTES) }
}

/** `node -e ""` takes 30 to 50 ms on current servers and laptops. */
const SLOW_NODE_MS = 60

/** Why figures of this machine may not be those of others. Empty: no reason was found. */
export function describeDisturbance({ node }: Reference): string[] {
  const [load = 0] = loadavg()
  const cores = cpus().length
  return [
    ...(load > cores / 2
      ? [
          `Other programs use this machine: its load is ${load.toFixed(1)} on ${cores} cores. Compare the ratios only.`,
        ]
      : []),
    ...(node > SLOW_NODE_MS
      ? [
          `Process starts are slow here: \`node -e ""\` takes ${Math.round(node)} ms, elsewhere 30 to 50. Compare the column "÷ node".`,
        ]
      : []),
  ]
}
