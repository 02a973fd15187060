// The processes of the box now, measured on the real /proc.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createBoxProcesses } from '../../../../agent/vitals/box-processes.ts'
import { createLiveProcesses } from '../../../../agent/vitals/processes/live-processes.ts'
import { liveProcessesSchema } from '../../../../shared/api/live-processes.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const ID = 'p_0123456789abcdef01234567'

function createReader() {
  const processes = createBoxProcesses({ membership: null })
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

t.test('measures CPU and memory of each process', async (t) => {
  const busy = await startNode(t, 'console.log(1); for (;;);')
  const idle = await startNode(t, 'console.log(1); setInterval(() => 0, 1e6)')
  const read = createReader()
  const { processes, total, ...box } = await read()
  t.equal(total, processes.length)
  const find = (pid?: number) => processes.find((process) => process.pid === pid)
  t.match(find(busy.pid), { ppid: process.pid, state: 'R', command: /-e console\.log\(1\); for/ })
  const busyPct = find(busy.pid)?.cpuPct ?? 0
  const idlePct = find(idle.pid)?.cpuPct ?? 100
  t.ok(busyPct > idlePct && busyPct > 5, `${busyPct} %, and ${idlePct} % of an idle process`)
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
  const read = createReader()
  const { at } = await read()
  const busy = await startNode(t, 'console.log(1); for (;;);')
  const sample = await waitUntil('the next measurement', async () => {
    const latest = await read()
    return latest.at !== at && latest
  })
  const found = sample.processes.find(({ pid }) => pid === busy.pid)
  t.ok(Number(found?.cpuPct) > 5, `${found?.cpuPct} %`)
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
