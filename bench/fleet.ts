// Measures the coordinator's memory and CPU usage with many idle agents connected.
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { receiveMessage, startFleet } from '../test/support/fleet.ts'
import { readCpuSeconds, readResidentBytes, terminate } from './support/processes.ts'
import { formatNumber, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const AGENT_COUNT = 1000
/** The time between the last connection and the measurement. */
const SETTLE_MS = 2000
const MEASURED_SECONDS = 20

export async function benchFleet(): Promise<Table> {
  await using children = new AsyncDisposableStack()
  const { fleet, coordinator, stop } = await startFleet(AGENT_COUNT)
  children.defer(stop)
  const coordinatorPid = coordinator.pid ?? 0
  const bytesBefore = await readResidentBytes(coordinatorPid)
  const agents = fork(fileURLToPath(new URL('fleet-agents.ts', import.meta.url)))
  children.defer(() => terminate(agents))
  agents.send(fleet)
  const connectMs = await receiveMessage<number>(agents)
  await sleep(SETTLE_MS)
  const cpuBefore = await readCpuSeconds(coordinatorPid)
  await sleep(MEASURED_SECONDS * 1000)
  const bytesAfter = await readResidentBytes(coordinatorPid)
  return {
    title: `Coordinator with ${AGENT_COUNT} idle agents, each sending a heartbeat every 10 s`,
    columns: [
      'resident memory before (MiB)',
      'resident memory with agents (MiB)',
      'KiB per agent',
      'CPU (% of one core)',
      'time until all are connected (s)',
    ],
    rows: [
      [
        formatNumber(toMiB(bytesBefore)),
        formatNumber(toMiB(bytesAfter)),
        formatNumber((bytesAfter - bytesBefore) / 1024 / AGENT_COUNT),
        formatNumber(((await readCpuSeconds(coordinatorPid)) - cpuBefore) * (100 / MEASURED_SECONDS)),
        formatNumber(connectMs / 1000),
      ],
    ],
  }
}
