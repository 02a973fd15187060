// Measures the resident memory and the CPU usage of the agent and the coordinator while the box is idle, beside a bare Node.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { NODE_FLAGS } from '../coordinator/agents/bundles/node-flags.ts'
import type { Boxwood } from './support/boxwood.ts'
import { readCpuSeconds, readResidentBytes, terminate } from './support/processes.ts'
import { formatNumber, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const MEASURED_SECONDS = 300
/** Processes on the box, which sleep. */
export const IDLE_PROCESSES = 150
/** The agent has started its listener, read the machine and sent its first samples. */
const SETTLE_MS = 60_000

export async function benchIdle({ agentPid, coordinatorPid, exec }: Boxwood): Promise<Table> {
  await exec(
    `echo $$ >bench-pids; for i in $(seq ${IDLE_PROCESSES}); do sleep 3600 >/dev/null 2>&1 & echo $! >>bench-pids; done`,
  )
  const script = 'setInterval(() => {}, 2 ** 30)'
  const bareNode = spawn(process.execPath, [...NODE_FLAGS, '--eval', script], { stdio: 'ignore' })
  try {
    await sleep(SETTLE_MS)
    return await measure({ agent: agentPid, coordinator: coordinatorPid, 'bare Node': bareNode.pid ?? 0 })
  } finally {
    await terminate(bareNode)
    await exec('kill $(tail -n +2 bench-pids); rm bench-pids')
  }
}

async function measure(pids: Record<string, number>): Promise<Table> {
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
    title: `Resource usage of one idle box with ${IDLE_PROCESSES} processes, over ${MEASURED_SECONDS} s`,
    columns: ['', 'resident memory (MiB)', 'CPU (% of one core)'],
    rows,
  }
}
