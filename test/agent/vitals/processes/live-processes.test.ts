// The processes of the box now, measured on the real /proc.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { readProcess, TICK_MS } from '../../../../agent/process-table.ts'
import {
  type BoxProcess,
  type BoxProcesses,
  createBoxProcesses,
} from '../../../../agent/vitals/box-processes.ts'
import { createLiveProcesses } from '../../../../agent/vitals/processes/live-processes.ts'
import { USAGE_HISTORY_MS } from '../../../../agent/vitals/processes/process-usage.ts'
import { liveProcessesSchema } from '../../../../shared/api/live-processes.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { waitUntil } from '../../../support/wait-until.ts'

/** Between two measurements. */
const MIN_INTERVAL_MS = 1000

const ID = 'p_0123456789abcdef01234567'

const allProcesses = createBoxProcesses({ membership: null })

function createReader(processes: BoxProcesses = allProcesses) {
  const reader = createLiveProcesses({
    ...{ processes, clock: systemClock, cpuCount: () => 1000 },
    readMemory: (all) => ({ usedBytes: all.length, totalBytes: 20 }),
  })
  return async (processId?: string) => liveProcessesSchema.parse(await reader.read(processId))
}

/** Runs a program of Node until the test ends. Resolves when the program prints. */
async function startNode(t: Test, code: string, env: Record<string, string> = {}): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', code], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

/** CPU usage is measured only between measurements that follow each other within 5 s: repeats `measure` until it was faster. */
const measureWithinHistory = <T>(measure: () => Promise<T>) =>
  waitUntil('the measurements follow each other within 5 s', async () => {
    const startedAt = performance.now()
    const result = await measure()
    const elapsedMs = performance.now() - startedAt
    return elapsedMs < USAGE_HISTORY_MS && { result, elapsedMs }
  })

/** Resolves when the process has used this many ticks of CPU time from now on. */
async function waitForTicks(pid: number | undefined, ticks: number): Promise<void> {
  const readTicks = () => readProcess(pid ?? 0)?.cpuTicks ?? 0
  const before = readTicks()
  await waitUntil(`the process has used ${ticks} ticks`, () => readTicks() >= before + ticks)
}

t.test('marks the agent and the init, which run the box', async (t) => {
  const child = await startNode(t, 'console.log(1); setInterval(() => {}, 1e6)')
  const { processes } = await createReader()()
  const getRole = (pid?: number) => processes.find((process) => process.pid === pid)?.role
  t.equal(getRole(process.pid), 'agent')
  t.equal(getRole(process.ppid), 'init')
  t.equal(getRole(1), 'init')
  t.equal(getRole(child.pid), null)
})

t.test('measures CPU and memory of each process', async (t) => {
  const busy = await startNode(t, 'console.log(1); for (;;);')
  const idle = await startNode(t, 'console.log(1); setInterval(() => 0, 1e6)')
  const usedTicks = 50
  const measure = () => {
    let lists = 0
    // The first read measures twice. Between both measurements, the busy process uses at least `usedTicks`.
    const list = async () => {
      if (++lists === 2) await waitForTicks(busy.pid, usedTicks)
      return allProcesses.list()
    }
    return createReader({ list })()
  }
  const { result, elapsedMs } = await measureWithinHistory(measure)
  const { processes, total, ...box } = result
  t.equal(total, processes.length)
  const find = (pid?: number) => processes.find((process) => process.pid === pid)
  t.match(find(busy.pid), { ppid: process.pid, state: 'R', command: /-e console\.log\(1\); for/ })
  const busyPct = find(busy.pid)?.cpuPct ?? 0
  const idlePct = find(idle.pid)?.cpuPct ?? 100
  // The kernel counts whole ticks, and percentages are rounded.
  const leastPct = ((usedTicks - 2) * TICK_MS * 100) / elapsedMs
  t.ok(busyPct > leastPct, `${busyPct} %, at least ${leastPct} %`)
  t.ok(busyPct > idlePct, `${idlePct} % of an idle process`)
  t.ok((find(idle.pid)?.memBytes ?? 0) > 10_000_000)
  t.ok(Math.abs(Date.parse(find(idle.pid)?.startedAt ?? '') - Date.now()) < 60_000)
  t.match(box, { cpuCount: 1000, memUsedBytes: total, memTotalBytes: 20 })
  t.ok(Number(box.cpuPct) < 5, `${box.cpuPct} % of 1000 CPUs`)
  const order = processes.map(({ cpuPct }) => cpuPct)
  t.strictSame(
    order,
    order.toSorted((a, b) => b - a),
  )
})

t.test('clients that ask at the same time get the same measurement', async (t) => {
  const read = createReader()
  const [first, second] = await Promise.all([read(), read()])
  t.equal(first.at, second.at)
  const third = await read()
  t.equal(third.at, first.at, 'also those that ask soon after')
  t.strictSame(
    third.processes.map(({ pid, cpuPct }) => [pid, cpuPct]),
    first.processes.map(({ pid, cpuPct }) => [pid, cpuPct]),
  )
})

t.test('a process that started after the previous measurement has CPU usage', async (t) => {
  const child = await startNode(t, 'console.log(1); setInterval(() => 0, 1e6)')
  const cpuTicks = 100
  const measure = async () => {
    let listed: BoxProcess[] = []
    const read = createReader({ list: async () => listed })
    const { at } = await read()
    const all = await allProcesses.list()
    listed = all.filter(({ pid }) => pid === child.pid).map((process) => ({ ...process, cpuTicks }))
    return waitUntil('the next measurement', async () => {
      const latest = await read()
      return latest.at !== at && latest
    })
  }
  const { result, elapsedMs } = await measureWithinHistory(measure)
  const cpuPct = Number(result.processes.find(({ pid }) => pid === child.pid)?.cpuPct)
  const usedMs = cpuTicks * TICK_MS
  // The measurements take place at some time in both calls.
  t.ok(cpuPct >= Math.floor((usedMs * 100) / elapsedMs), `${cpuPct} % in at most ${elapsedMs} ms`)
  t.ok(cpuPct <= Math.ceil((usedMs * 100) / MIN_INTERVAL_MS), `${cpuPct} % in at least ${MIN_INTERVAL_MS} ms`)
})

t.test('finds the processes of a command, also those that removed the variable', async (t) => {
  const code = `
    const { spawn } = require('node:child_process')
    const child = spawn('sleep', ['97'], { env: {}, stdio: 'ignore' })
    child.on('spawn', () => console.log(child.pid))
    process.on('exit', () => child.kill('SIGKILL'))
    process.on('SIGTERM', () => process.exit())
  `
  const parent = await startNode(t, code, { BOXWOOD_PROCESS_ID: ID })
  t.teardown(() => parent.kill('SIGTERM'))
  const read = createReader()
  const { processes, total } = await read(ID)
  t.equal(total, 2)
  t.strictSame(processes.map(({ command }) => command.split(' ').at(-1)).includes('97'), true)
  t.ok(processes.every(({ processId }) => processId === ID))
  t.ok(processes.some(({ pid }) => pid === parent.pid))
  t.equal((await read()).processes.find(({ pid }) => pid === process.pid)?.processId, null)
  t.match(await read('p_ffffffffffffffffffffffff'), { total: 0, processes: [] })
  parent.kill('SIGTERM')
  await once(parent, 'exit')
})

t.test('processes that exit between two measurements', async (t) => {
  const child = await startNode(t, 'console.log(1); setInterval(() => 0, 1e6)')
  const read = createReader()
  const hasChild = async () => (await read()).processes.some(({ pid }) => pid === child.pid)
  t.ok(await hasChild())
  child.kill('SIGKILL')
  await once(child, 'exit')
  await waitUntil('the process is not listed any more', async () => !(await hasChild()))
})
