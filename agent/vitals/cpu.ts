// How busy the processors were since the last look.
import { readFileSync } from 'node:fs'
import type { ProcessEntry } from '../exec/process-table.ts'

/** /proc counts CPU time in hundredths of a second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

/** The whole machine: the first line of /proc/stat. Ticks, summed over the processors. */
export function machineTicks(procRoot: string): { busy: number; total: number } {
  const line = readFileSync(`${procRoot}/stat`, 'latin1').split('\n', 1)[0] ?? ''
  // user nice system idle iowait irq softirq steal; guest time is within user time.
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number)
  const sum = (indexes: number[]) => indexes.reduce((total, index) => total + (ticks[index] ?? 0), 0)
  const busy = sum([0, 1, 2, 5, 6])
  return { busy, total: busy + sum([3, 4, 7]) }
}

/**
 * The box's own processes, against `cpus` processors since the boot. A child's time passes to its parent when it is
 * waited for, so with the children's times the sum goes on through every exit.
 */
export function allotmentTicks(processes: readonly ProcessEntry[], cpus: number, procRoot: string) {
  const seconds = Number(readFileSync(`${procRoot}/uptime`, 'latin1').split(' ', 1)[0])
  return {
    busy: processes.reduce((sum, { cpuTicks, childrenCpuTicks }) => sum + cpuTicks + childrenCpuTicks, 0),
    total: seconds * cpus * TICKS_PER_SECOND,
  }
}
