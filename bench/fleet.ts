// Measures the coordinator's memory and CPU usage with many idle agents connected.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readCpuSeconds, readResidentBytes, terminate } from './support/processes.ts'
import { formatNumber, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const AGENTS = 1000
const SECONDS = 20

export type FleetBox = { boxId: string; token: string }
/** The coordinator's URL and the agent token of each box. */
export type Fleet = { url: string; boxes: FleetBox[] }

const scriptPath = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Rejects when the child exits first. */
async function receiveMessage<T>(child: ChildProcess): Promise<T> {
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`${child.spawnfile} exited with ${code} before it sent its message`)
  })
  const [message] = await Promise.race([once(child, 'message'), exited])
  return message
}

export async function benchFleet(): Promise<Table> {
  await using children = new AsyncDisposableStack()
  const coordinator = fork(scriptPath('fleet-coordinator.ts'), [String(AGENTS)])
  children.defer(() => terminate(coordinator))
  const fleet = await receiveMessage<Fleet>(coordinator)
  const pid = coordinator.pid ?? 0
  const bytesBefore = await readResidentBytes(pid)
  const agents = fork(scriptPath('fleet-agents.ts'))
  children.defer(() => terminate(agents))
  agents.send(fleet)
  const connectMs = await receiveMessage<number>(agents)
  await sleep(2000)
  const cpuBefore = await readCpuSeconds(pid)
  await sleep(SECONDS * 1000)
  const bytesAfter = await readResidentBytes(pid)
  return {
    title: `Coordinator with ${AGENTS} idle agents, each sending a heartbeat every 10 s`,
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
        formatNumber((bytesAfter - bytesBefore) / 1024 / AGENTS),
        formatNumber(((await readCpuSeconds(pid)) - cpuBefore) * (100 / SECONDS)),
        formatNumber(connectMs / 1000),
      ],
    ],
  }
}
