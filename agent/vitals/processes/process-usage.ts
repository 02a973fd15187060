// CPU and memory of single processes, by pidusage. Loaded when it is first used.
import type { Status } from 'pidusage'

/** pidusage keeps a descriptor open for each process that it has measured, for up to one and a half times this. */
export const USAGE_HISTORY_MS = 5000
/** The agent may have no more than 1024 descriptors. */
export const MAX_MEASURED_PROCESSES = 256

/**
 * Pid → CPU as percent of one CPU since the previous call, and resident bytes. CPU is 0 for a process that was not measured
 * within USAGE_HISTORY_MS. A process that has exited is missing.
 */
export async function measureProcesses(pids: readonly number[]): Promise<Map<number, Status>> {
  if (pids.length === 0) return new Map()
  // Otherwise it prints to the console where the box has no getconf.
  process.env.PIDUSAGE_SILENT = '1'
  const { default: pidusage } = await import('pidusage')
  // Rejects when the only process has exited. Of several processes, the result is null or undefined.
  const stats = await pidusage([...pids], { maxage: USAGE_HISTORY_MS }).catch(() => ({}))
  const found = Object.values<Status | null | undefined>(stats).filter((stat) => stat != null)
  return new Map(found.map((stat) => [stat.pid, stat]))
}
