// Reads cumulative CPU time of the machine or of the box's processes. Usage is the difference of two readings.
import { readFileSync } from 'node:fs'
import type { ProcessEntry } from '../exec/process-table.ts'

/** USER_HZ: the unit of CPU times in /proc, 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100

/** The whole machine, from the first line of /proc/stat. Ticks, summed over all processors. */
export function readMachineCpuTicks(procRoot: string): { busy: number; total: number } {
  const line = readFileSync(`${procRoot}/stat`, 'latin1').split('\n', 1)[0] ?? ''
  // Fields: user nice system idle iowait irq softirq steal. Guest time is included in user time.
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number)
  const sum = (indexes: number[]) => indexes.reduce((total, index) => total + (ticks[index] ?? 0), 0)
  const busy = sum([0, 1, 2, 5, 6])
  return { busy, total: busy + sum([3, 4, 7]) }
}

/**
 * The box's own processes; `total` is the capacity of `cpus` processors since boot. A process's CPU time is added to its
 * parent's children time when it is reaped, so the sum with children times does not drop when processes exit.
 */
export function readBoxCpuTicks(processes: readonly ProcessEntry[], cpus: number, procRoot: string) {
  const uptimeSeconds = Number(readFileSync(`${procRoot}/uptime`, 'latin1').split(' ', 1)[0])
  return {
    busy: processes.reduce((sum, { cpuTicks, childrenCpuTicks }) => sum + cpuTicks + childrenCpuTicks, 0),
    total: uptimeSeconds * cpus * TICKS_PER_SECOND,
  }
}
