// Measures the CPU usage of the agents of 20 idle boxes on one machine, at each isolation level.
// `node bench/idle-boxes.ts [LEVEL…]` runs only this benchmark.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Box } from '../shared/api/boxes.ts'
import { findAgentPid } from '../test/support/find-agent-process.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { readCpuSeconds } from './support/processes.ts'
import { formatNumber, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const LEVELS = ['bubblewrap', 'namespaces', 'process']
const BOXES = 20
const SETTLE_MS = 30_000
const MEASURED_SECONDS = 60

export async function benchIdleBoxes(levels: readonly string[] = LEVELS): Promise<Table> {
  const rows: string[][] = []
  for (const level of levels) {
    const boxwood = await startBoxwood({ BOXWOOD_LOCAL_ISOLATION: level })
    try {
      rows.push([level, ...(await measure(boxwood))])
    } finally {
      await boxwood.close()
    }
  }
  return {
    title: `${BOXES} idle boxes on one machine, over ${MEASURED_SECONDS} s (CPU, % of one core)`,
    columns: ['isolation level', 'all agents', 'one agent, median', 'coordinator'],
    rows,
  }
}

async function measure({ sendJson, coordinatorPid }: Boxwood): Promise<string[]> {
  for (let n = 1; n < BOXES; n++) await sendJson('POST', '/api/v1/boxes', { name: `idle-${n}` })
  const boxes = await waitUntil('the boxes are running', async () => {
    const { boxes }: { boxes: Box[] } = await sendJson('GET', '/api/v1/boxes?live=1')
    return boxes.every(({ observedState }) => observedState === 'running') ? boxes : undefined
  })
  const agentPids = await waitUntil('the agents run', () => {
    const pids = boxes.map(({ id }) => findAgentPid(id)).filter((pid) => pid !== undefined)
    return pids.length === BOXES ? pids : undefined
  })
  await sleep(SETTLE_MS)
  const pids = [...agentPids, coordinatorPid]
  const before = await Promise.all(pids.map(readCpuSeconds))
  await sleep(MEASURED_SECONDS * 1000)
  const after = await Promise.all(pids.map(readCpuSeconds))
  const percents = after.map((seconds, i) => (seconds - (before[i] ?? 0)) * (100 / MEASURED_SECONDS))
  const agents = percents.slice(0, -1)
  return [agents.reduce((sum, percent) => sum + percent, 0), median(agents), percents.at(-1) ?? 0].map(
    formatNumber,
  )
}

if (import.meta.main) {
  const levels = process.argv.slice(2)
  console.log(formatMarkdown(await benchIdleBoxes(levels.length > 0 ? levels : LEVELS)))
}
