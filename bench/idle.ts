// What an idle box costs: the agent's resident memory and CPU, and the coordinator's.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Boxwood } from './support/boxwood.ts'
import { cpuSeconds, residentBytes } from './support/processes.ts'
import { mib, round } from './support/stats.ts'
import type { Table } from './support/table.ts'

const SECONDS = 30

export async function benchIdle({ agentPid, coordinatorPid }: Boxwood): Promise<Table> {
  const pids = { agent: agentPid, coordinator: coordinatorPid }
  const before = await Promise.all(Object.values(pids).map(cpuSeconds))
  await sleep(SECONDS * 1000)
  const rows = await Promise.all(
    Object.entries(pids).map(async ([name, pid], i) => [
      name,
      round(mib(await residentBytes(pid))),
      round(((await cpuSeconds(pid)) - (before[i] ?? 0)) * (100 / SECONDS)),
    ]),
  )
  return { title: `Idle, over ${SECONDS} s`, columns: ['', 'resident MiB', 'CPU, % of a core'], rows }
}
