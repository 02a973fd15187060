// What many idle boxes cost the coordinator: its memory with a thousand agents connected, and its CPU.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuSeconds, end, residentBytes } from './support/processes.ts'
import { mib, round } from './support/stats.ts'
import type { Table } from './support/table.ts'

const AGENTS = 1000
const SECONDS = 20

export type FleetBox = { boxId: string; token: string }
export type Fleet = { url: string; boxes: FleetBox[] }

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url))

async function message<T>(child: ChildProcess): Promise<T> {
  const [said] = await once(child, 'message')
  return said
}

export async function benchFleet(): Promise<Table> {
  const coordinator = fork(script('fleet-coordinator.ts'), [String(AGENTS)])
  const fleet = await message<Fleet>(coordinator)
  const pid = coordinator.pid ?? 0
  const empty = await residentBytes(pid)
  const agents = fork(script('fleet-agents.ts'))
  try {
    agents.send(fleet)
    const connectedMs = await message<number>(agents)
    await sleep(2000)
    const cpu = await cpuSeconds(pid)
    await sleep(SECONDS * 1000)
    const full = await residentBytes(pid)
    return {
      title: `The coordinator with ${AGENTS} idle agents, a heartbeat of each every 10 s`,
      columns: [
        'resident MiB, none',
        `resident MiB, ${AGENTS}`,
        'KiB an agent',
        'CPU, % of a core',
        'all connected after, s',
      ],
      rows: [
        [
          round(mib(empty)),
          round(mib(full)),
          round((full - empty) / 1024 / AGENTS),
          round(((await cpuSeconds(pid)) - cpu) * (100 / SECONDS)),
          round(connectedMs / 1000),
        ],
      ],
    }
  } finally {
    await end(agents)
    await end(coordinator)
  }
}
