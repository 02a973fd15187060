// The columns with the CPU and memory usage of a process, aligned right.
import { formatBytes } from '../output/format.ts'

export const CPU_COLUMN = {
  header: ' %CPU',
  cell: ({ cpuPct }: { cpuPct: number }): string => cpuPct.toFixed(1).padStart(5),
}

export const MEMORY_COLUMN = {
  header: '  MEMORY',
  cell: ({ memBytes }: { memBytes: number }): string => formatBytes(memBytes).padStart(8),
}
