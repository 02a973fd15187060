// Compares one sample of the agent with the same figures from systeminformation and pidusage, on a machine with idle processes.
import { execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { NODE_FLAGS } from '../coordinator/agents/bundles/node-flags.ts'
import { IDLE_PROCESSES } from './idle.ts'
import { terminate } from './support/processes.ts'
import { formatNumber } from './support/stats.ts'
import type { Table } from './support/table.ts'

const PROGRAM = fileURLToPath(new URL('./sample-candidate.ts', import.meta.url))
const CANDIDATES = [
  ['boxwood', 'the agent: `agent/vitals/usage/`'],
  ['systeminformation', '`systeminformation`'],
  ['pidusage', '`pidusage`, CPU and memory of the processes only'],
] as const

export async function benchSample(): Promise<Table> {
  const idle = Array.from({ length: IDLE_PROCESSES }, () => spawn('sleep', ['3600'], { stdio: 'ignore' }))
  try {
    const rows: string[][] = []
    for (const [name, title] of CANDIDATES) {
      const { stdout } = await promisify(execFile)(process.execPath, [...NODE_FLAGS, PROGRAM, name])
      const { p50Ms, cpuMs } = JSON.parse(stdout)
      rows.push([title, formatNumber(p50Ms), formatNumber(cpuMs)])
    }
    return {
      title: `One sample of a machine with ${IDLE_PROCESSES} idle processes`,
      columns: ['', 'p50 (ms)', 'CPU time, with child processes (ms)'],
      rows,
    }
  } finally {
    await Promise.all(idle.map((child) => terminate(child)))
  }
}
