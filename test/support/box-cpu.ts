// The CPU time of a box by the process table of the host, to compare with the metrics of the box.
import { readProcess, TICK_MS } from '../../agent/process-table.ts'
import { listBoxPids } from './find-agent-process.ts'
import { sleepUntil } from './measurements.ts'

/** Of all processes of the box, with those that have exited. */
function readCpuMs(boxId: string): number {
  const ticks = listBoxPids(boxId).map((pid) => {
    const { cpuTicks = 0, childrenCpuTicks = 0 } = readProcess(pid) ?? {}
    return cpuTicks + childrenCpuTicks
  })
  return ticks.reduce((sum, count) => sum + count, 0) * TICK_MS
}

/** The mean number of CPUs that the box uses in this time, which is still to come. */
export async function measureBoxCpus(boxId: string, fromMs: number, toMs: number): Promise<number> {
  await sleepUntil(fromMs)
  const from = { at: performance.now(), cpuMs: readCpuMs(boxId) }
  await sleepUntil(toMs)
  const to = { at: performance.now(), cpuMs: readCpuMs(boxId) }
  return (to.cpuMs - from.cpuMs) / (to.at - from.at)
}
