// Measures the latency of requests to one box while the agent of another box attacks the coordinator.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type FleetBox, receiveMessage, startFleet } from '../test/support/fleet.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { RAISED_LIMITS } from './support/edge-limits.ts'
import { createFleetClient } from './support/fleet-client.ts'
import { terminate } from './support/processes.ts'
import { formatNumber, measureRuns, median, quantile } from './support/stats.ts'
import type { Table } from './support/table.ts'

export const CORRECT = 'correct'
export const PROCESS_ID = 'p_0123456789abcdef01234567'

const ATTACKS = [
  'WebSocket pings',
  'windows of unknown requests',
  'chunks of one byte',
  'tiny report lines',
  'tiny stream frames',
  'responses of 12 MiB',
  'responses with millions of values',
] as const
type Attack = (typeof ATTACKS)[number]

/** Requests that a client sends to the hostile box meanwhile, within the limits of the edge: 8 at once, 20 per second. */
const ATTACKED_PATHS: Partial<Record<Attack, string>> = {
  'tiny stream frames': `/exec/${PROCESS_ID}/stream`,
  'chunks of one byte': '/exec',
  'responses of 12 MiB': '/exec',
  'responses with millions of values': '/exec',
}
const ATTACK_CONCURRENCY = 8
const ATTACK_INTERVAL_MS = 50

const WARM_UP_REQUESTS = 1000
const MEASURED_REQUESTS = 3000
/** The largest valid list of processes: every character of the commands needs an escape. */
export const createLargeList = (): string =>
  JSON.stringify({
    ok: true,
    type: 'exec.list',
    processes: Array(1000).fill({
      processId: PROCESS_ID,
      pid: 2,
      running: true,
      lost: false,
      exitCode: null,
      signal: null,
      startedAt: '2026-01-01T00:00:00.000Z',
      command: '\u0001'.repeat(2048),
    }),
  })

export async function benchHostile(): Promise<Table> {
  await using children = new AsyncDisposableStack()
  const { fleet, stop } = await startFleet(ATTACKS.length + 1, { settings: RAISED_LIMITS })
  children.defer(stop)
  const [box, ...hostileBoxes] = fleet.boxes
  if (box === undefined) throw new Error('the coordinator has no boxes')
  const client = createFleetClient(fleet)
  children.defer(() => client.close())

  async function startAgent(attack: string, { boxId, token }: FleetBox) {
    const script = fileURLToPath(new URL('hostile-box.ts', import.meta.url))
    const child = fork(script, [attack, fleet.url, boxId, token])
    children.defer(() => terminate(child, 'SIGKILL'))
    await receiveMessage(child)
    return child
  }

  async function measure(): Promise<number[]> {
    const request = async () => {
      const status = await client.send('GET', box as FleetBox, '/exec')
      if (status !== 200) throw new Error(`the other box answered with status ${status}`)
    }
    await measureRuns(WARM_UP_REQUESTS, 1, request)
    return measureRuns(MEASURED_REQUESTS, 1, request)
  }

  /** Sends requests to the hostile box until the returned function is called. */
  function requestHostileBox(hostileBox: FleetBox, path: string): () => void {
    let pending = 0
    const timer = setInterval(() => {
      if (pending >= ATTACK_CONCURRENCY) return
      pending += 1
      client
        .send('GET', hostileBox, path)
        .catch(() => undefined)
        .finally(() => {
          pending -= 1
        })
    }, ATTACK_INTERVAL_MS)
    return () => clearInterval(timer)
  }

  await startAgent(CORRECT, box)
  await waitUntil('the box answers', async () => (await client.send('GET', box, '/exec')) === 200)
  const idle = await measure()
  const formatRow = (name: string, samples: number[]) => [
    name,
    formatNumber(median(samples)),
    formatNumber(quantile(samples, 0.99)),
    formatNumber(median(samples) / median(idle)),
  ]
  const rows = [formatRow('none', idle)]
  for (const [index, attack] of ATTACKS.entries()) {
    const hostileBox = hostileBoxes[index] as FleetBox
    const attacker = await startAgent(attack, hostileBox)
    const path = ATTACKED_PATHS[attack]
    const stopRequests = path === undefined ? () => undefined : requestHostileBox(hostileBox, path)
    rows.push(formatRow(attack, await measure()))
    stopRequests()
    await terminate(attacker, 'SIGKILL')
  }
  return {
    title: 'Latency of `GET /exec` of one box while the agent of another box attacks the coordinator',
    columns: ['attack', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ none'],
    rows,
  }
}
