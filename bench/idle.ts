// Measures the resident memory and the CPU usage of the agent and the coordinator while the box is idle.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Boxwood } from './support/boxwood.ts'
import { readCpuSeconds, readResidentBytes } from './support/processes.ts'
import { formatNumber, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const MEASURED_SECONDS = 30

export async function benchIdle({ agentPid, coordinatorPid }: Boxwood): Promise<Table> {
  const pids = { agent: agentPid, coordinator: coordinatorPid }
  const cpuBefore = await Promise.all(Object.values(pids).map(readCpuSeconds))
  await sleep(MEASURED_SECONDS * 1000)
  const rows = await Promise.all(
    Object.entries(pids).map(async ([name, pid], i) => [
      name,
      formatNumber(toMiB(await readResidentBytes(pid))),
      formatNumber(((await readCpuSeconds(pid)) - (cpuBefore[i] ?? 0)) * (100 / MEASURED_SECONDS)),
    ]),
  )
  return {
    title: `Resource usage of one idle box, over ${MEASURED_SECONDS} s`,
    columns: ['', 'resident memory (MiB)', 'CPU (% of one core)'],
    rows,
  }
}
