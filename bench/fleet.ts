// Measures the coordinator's memory and CPU usage with many idle agents connected.
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { receiveMessage, startFleet } from '../test/support/fleet.ts'
import { getPid, readCpuSeconds, readResidentBytes, terminate } from './support/processes.ts'
import { formatNumber, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const AGENT_COUNT = 1000
/** The time between the last connection and the measurement. */
const SETTLE_MS = 2000
const MEASURED_SECONDS = 20

export async function benchFleet(): Promise<Table> {
  const title = `Coordinator with ${AGENT_COUNT} idle agents, each sending a heartbeat every 10 s`
  return {
    title,
    columns: [
      '',
      'resident memory before (MiB)',
      'resident memory with agents (MiB)',
      'KiB per agent',
      'CPU (% of one core)',
      'time until all are connected (s)',
    ],
    rows: [['', ...(await measureFleet())]],
  }
}

async function measureFleet(): Promise<string[]> {
  await using children = new AsyncDisposableStack()
  const options = { execArgv: ['--expose-gc'] }
  const { fleet, coordinator, stop } = await startFleet(AGENT_COUNT, options)
  children.defer(stop)
  const readMemory = async () => {
    coordinator.send('collect')
    await receiveMessage(coordinator)
    return readResidentBytes(coordinatorPid)
  }
  const coordinatorPid = getPid(coordinator)
  const bytesBefore = await readMemory()
  const agents = fork(fileURLToPath(new URL('../test/support/fleet-agents.ts', import.meta.url)))
  children.defer(() => terminate(agents))
  agents.send(fleet)
  const connectMs = await receiveMessage<number>(agents)
  await sleep(SETTLE_MS)
  const cpuBefore = await readCpuSeconds(coordinatorPid)
  await sleep(MEASURED_SECONDS * 1000)
  const cpuSeconds = (await readCpuSeconds(coordinatorPid)) - cpuBefore
  const bytesAfter = await readMemory()
  return [
    toMiB(bytesBefore),
    toMiB(bytesAfter),
    (bytesAfter - bytesBefore) / 1024 / AGENT_COUNT,
    cpuSeconds * (100 / MEASURED_SECONDS),
    connectMs / 1000,
  ].map(formatNumber)
}

if (import.meta.main) console.log(formatMarkdown(await benchFleet()))
