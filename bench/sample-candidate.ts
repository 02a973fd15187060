// A program of its own: takes samples with one of the candidates and prints the duration and the CPU time of one sample.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from './support/stats.ts'

const RUNS = 20
const WARM_UP_RUNS = 2
/** systeminformation returns the previous result of some functions within 500 ms. */
const PAUSE_MS = 1000

/** The agent's sample of a box on a shared host. */
async function createBoxwood(): Promise<() => Promise<unknown>> {
  const { createBoxProcesses } = await import('../agent/vitals/box-processes.ts')
  const { createReader } = await import('../agent/vitals/usage/reading.ts')
  const { computeUsage } = await import('../agent/vitals/usage/usage.ts')
  const { readScope } = await import('../agent/vitals/scope.ts')
  const env = { BOXWOOD_CPUS: '2', BOXWOOD_NETWORK: 'own', BOXWOOD_PRIVATE_PIDS: '1' }
  const scope = readScope({ boxId: '', env })
  const boxProcesses = createBoxProcesses({ membership: scope.membership })
  // The space of the disk is measured rarely, by a process of its own.
  const diskSpace = {
    update: () => undefined,
    usedBytes: () => null,
    pid: () => undefined,
    close: async () => undefined,
  }
  const read = createReader({ scope, home: '/', boxProcesses, diskSpace })
  let previous = await read()
  return async () => {
    const now = await read()
    computeUsage(now, previous, 0)
    previous = now
  }
}

/** The same figures. */
async function createSystemInformation(): Promise<() => Promise<unknown>> {
  const { currentLoad, mem, fsSize, fsStats, networkStats, processes } = await import('systeminformation')
  return () => Promise.all([currentLoad(), mem(), fsSize(), fsStats(), networkStats('*'), processes()])
}

/** CPU and memory of the processes. */
async function createPidusage(): Promise<() => Promise<unknown>> {
  const { default: pidusage } = await import('pidusage')
  const { listPids } = await import('../agent/process-table.ts')
  return () => pidusage(listPids())
}

const candidates: Record<string, () => Promise<() => Promise<unknown>>> = {
  boxwood: createBoxwood,
  systeminformation: createSystemInformation,
  pidusage: createPidusage,
}

/** Includes the processes that this process has started. /proc/PID/stat counts 100 ticks per second. */
function readCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  const ticks = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number)
  return ticks.reduce((sum, value) => sum + value, 0) * 10
}

const sample = await candidates[process.argv[2] ?? '']?.()
if (sample === undefined) throw new Error(`the argument must be one of ${Object.keys(candidates).join(', ')}`)
const durations: number[] = []
let cpuMs = 0
for (let i = 0; i < WARM_UP_RUNS + RUNS; i++) {
  await sleep(PAUSE_MS)
  const cpuBefore = readCpuMs()
  const start = performance.now()
  await sample()
  if (i < WARM_UP_RUNS) continue
  durations.push(performance.now() - start)
  cpuMs += readCpuMs() - cpuBefore
}
console.log(JSON.stringify({ p50Ms: quantile(durations, 0.5), cpuMs: cpuMs / RUNS }))
