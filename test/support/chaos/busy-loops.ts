// Processes that use all processor time of the machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'

/** Exits when its parent, the first argument, has exited: also when the test is killed. */
const LOOP = `while kill -0 "$1" 2>/dev/null; do
  i=0
  while [ $i -lt 200000 ]; do i=$((i + 1)); done
done`

export type BusyLoops = { count: number; stop(): Promise<void> }

export function startBusyLoops(perCpu: number): BusyLoops {
  const count = perCpu * availableParallelism()
  const loops = Array.from({ length: count }, () =>
    spawn('sh', ['-c', LOOP, 'sh', String(process.pid)], { stdio: 'ignore' }),
  )
  return {
    count,
    async stop() {
      const exits = loops
        .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
        .map((loop) => once(loop, 'exit'))
      for (const loop of loops) loop.kill('SIGKILL')
      await Promise.all(exits)
    },
  }
}
