// Snapshots of the box's processes and listening ports, as reports.
import { appendFileSync, chmodSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BoxProcess, createBoxProcesses } from '../../../../agent/vitals/box-processes.ts'
import { createProcessSnapshots } from '../../../../agent/vitals/processes/snapshots.ts'
import {
  type ListeningTuple,
  type ProcessSnapshotReport,
  processDeltaSchema,
} from '../../../../shared/api/process-snapshots.ts'
import { durableReportSchema } from '../../../../shared/api/reports.ts'
import { TUNNEL_LIMITS } from '../../../../shared/limits.ts'
import { applyDelta, EMPTY_SNAPSHOT, type ProcessSnapshot } from '../../../../shared/process-delta.ts'
import { createFakeProc } from '../fake-proc.ts'

const MINUTE = 60_000
/** The start of an hour. */
const START = Date.UTC(2026, 0, 31, 3)
const BOOT = START - 1_000_000

/** @param list the processes. Default: those of the fake /proc */
function setUp(t: Test, list?: BoxProcess[]) {
  const proc = createFakeProc(t)
  const passwdPath = join(proc.root, 'passwd')
  writeFileSync(passwdPath, 'root:x:0:0::/root:/bin/sh\nbox:x:1000:1000::/home/box:/bin/sh\n')
  let now = START
  let clockOffset = 0
  let ports: ListeningTuple[] = []
  let isFull = false
  const reports: ProcessSnapshotReport[] = []
  const task = createProcessSnapshots({
    procRoot: proc.root,
    passwdPath,
    processes: list
      ? { list: async () => list }
      : createBoxProcesses({ procRoot: proc.root, membership: null }),
    listeners: { current: () => ports },
    clock: { now: () => now + clockOffset },
    append(report) {
      if (!isFull) reports.push(report)
      return !isFull
    },
    monotonicNow: () => now,
    uptimeSeconds: () => (now - BOOT) / 1000,
  })
  return {
    ...{ proc, passwdPath, reports },
    setPorts: (next: ListeningTuple[]) => {
      ports = next
    },
    setFull: (next: boolean) => {
      isFull = next
    },
    setClockOffset: (ms: number) => {
      clockOffset = ms
    },
    /** Takes the snapshot of a time, and returns the report. */
    async take(at: number, lateMs = 0) {
      now = at + lateMs
      await task.run(at)
      return reports.at(-1)
    },
  }
}

const parseDelta = (report: ProcessSnapshotReport | undefined) =>
  processDeltaSchema.parse(JSON.parse(report?.delta ?? ''))
const apply = (reports: ProcessSnapshotReport[]): ProcessSnapshot =>
  reports.reduce(
    (state, report) => applyDelta(report.previousAt === null ? EMPTY_SNAPSHOT : state, parseDelta(report)),
    EMPTY_SNAPSHOT,
  )

t.test('the first snapshot is complete', async (t) => {
  const { proc, take, setPorts } = setUp(t)
  setPorts([[80, 7, 'node']])
  proc.addProcess({ pid: 1, ppid: 0, name: 'init', uid: 0, start: 100, args: ['/sbin/init'], rssKb: 10 })
  proc.addProcess({
    pid: 7,
    ppid: 1,
    name: 'node',
    start: 50_000,
    cpu: 5000,
    args: ['node', 'a b.js'],
    rssKb: 20,
  })
  const report = await take(START + MINUTE)
  t.match(report, { type: 'processes.snapshot', at: START + MINUTE, previousAt: null })
  t.ok(durableReportSchema.safeParse(report).success)
  t.strictSame(parseDelta(report), {
    // Process 7 has used 50 s of CPU in the 560 s since its start.
    added: [
      [7, 1, BOOT + 500_000, 'box', 'node', 'node a b.js'],
      [1, 0, BOOT + 1000, 'root', 'init', '/sbin/init'],
    ],
    removed: [],
    usage: [
      [7, 89, 20],
      [1, 0, 10],
    ],
    ports: [[80, 7, 'node']],
    total: 2,
  })
})

t.test('later snapshots contain the differences', async (t) => {
  const { proc, take, reports, setPorts } = setUp(t)
  proc.addProcess({ pid: 1, name: 'init', cpu: 100, rssKb: 10 })
  proc.addProcess({ pid: 5, name: 'old', rssKb: 10 })
  await take(START)
  t.strictSame(parseDelta(await take(START + MINUTE)), {
    ...{ added: [], removed: [], total: 2 },
    usage: [[1, 0]],
  })
  proc.removeProcess(5)
  // 30 s of CPU in a minute.
  proc.addProcess({ pid: 1, name: 'init', cpu: 3100, rssKb: 10 })
  proc.addProcess({ pid: 6, name: 'new', start: 105_000, cpu: 600, rssKb: 10 })
  setPorts([[80, 6, 'new']])
  const report = await take(START + 2 * MINUTE)
  t.equal(report?.previousAt, START + MINUTE)
  t.strictSame(parseDelta(report), {
    added: [[6, 1, BOOT + 1_050_000, 'box', 'new', '[new]']],
    removed: [5],
    usage: [
      [1, 500],
      [6, 100, 10],
    ],
    ports: [[80, 6, 'new']],
    total: 2,
  })
  t.strictSame([...apply(reports).processes.keys()], [1, 6])
})

t.test('a snapshot has the time at which it was taken', async (t) => {
  const { take } = setUp(t)
  t.equal((await take(START, 31_000))?.at, START + 31_000)
  t.match(await take(START + MINUTE, 5), { at: START + MINUTE + 5, previousAt: START + 31_000 })
})

t.test('memory is rounded: small changes are not reported', async (t) => {
  const { proc, take, reports } = setUp(t)
  const sizes = [255, 256, 257, 1_000_000, 1_000_500, 1_010_000]
  const rounded: (number | undefined)[] = []
  for (const [minute, rssKb] of sizes.entries()) {
    proc.addProcess({ pid: 1, name: 'init', rssKb })
    await take(START + minute * MINUTE)
    rounded.push(apply(reports).processes.get(1)?.rssKiB)
  }
  for (const [index, rssKb] of sizes.entries())
    t.ok(Math.abs((rounded[index] ?? 0) / rssKb - 1) <= 0.004, `${rssKb}: ${rounded[index]}`)
  t.strictSame(parseDelta(reports[4]).usage, [])
  t.not(parseDelta(reports[5]).usage.length, 0)
})

t.test('a process with the pid of an exited one does not inherit its CPU time', async (t) => {
  const { proc, take, reports } = setUp(t)
  proc.addProcess({ pid: 5, name: 'old', cpu: 9000, start: 500 })
  await take(START)
  proc.addProcess({ pid: 5, name: 'new', cpu: 600, start: 101_000 })
  await take(START + MINUTE)
  t.match(apply(reports).processes.get(5), {
    cpuTenths: 100,
    process: [5, 1, BOOT + 1_010_000, 'box', 'new'],
  })
})

t.test('a snapshot is complete in a new hour, and after the clock was set back', async (t) => {
  const { take } = setUp(t)
  const isComplete = async (at: number) => (await take(at))?.previousAt === null
  t.equal(await isComplete(START + 58 * MINUTE), true)
  t.equal(await isComplete(START + 59 * MINUTE), false)
  t.equal(await isComplete(START + 60 * MINUTE), true)
  t.equal(await isComplete(START + 61 * MINUTE), false)
  t.equal(await isComplete(START + 30 * MINUTE), true, 'the clock was set back')
  t.equal(await isComplete(START + 31 * MINUTE), true, 'the coordinator may have ignored the previous one')
  t.equal(await isComplete(START + 61 * MINUTE), true)
  t.equal(await isComplete(START + 62 * MINUTE), true)
  t.equal(await isComplete(START + 63 * MINUTE), false)
})

t.test('a dropped report is not the base of the next one', async (t) => {
  const { proc, take, setFull, reports } = setUp(t)
  proc.addProcess({ pid: 1, name: 'init' })
  await take(START)
  setFull(true)
  proc.addProcess({ pid: 2, name: 'new' })
  await take(START + MINUTE)
  setFull(false)
  const report = await take(START + 2 * MINUTE)
  t.equal(report?.previousAt, START)
  t.strictSame([...apply(reports).processes.keys()], [1, 2])
})

t.test('start times change when the clock is set, but not when it drifts', async (t) => {
  const { proc, take, reports, setClockOffset } = setUp(t)
  proc.addProcess({ pid: 1, start: 100 })
  const takeStart = async (at: number) => {
    await take(at)
    return apply(reports).processes.get(1)?.process[2]
  }
  t.equal(await takeStart(START), BOOT + 1000)
  setClockOffset(900)
  t.equal(await takeStart(START + MINUTE), BOOT + 1000)
  setClockOffset(-5000)
  t.equal(await takeStart(START + 2 * MINUTE), BOOT - 4000)
})

t.test('names and command lines have any bytes', async (t) => {
  const { proc, take, reports } = setUp(t)
  proc.addProcess({
    pid: 1,
    name: 'a) R 9 (\n\u001b[2J',
    args: ['line 1\nline 2', '\u001b[31m', '\u202eé😀', ''],
  })
  proc.addProcess({ pid: 2, name: 'bytes' })
  writeFileSync(join(proc.root, '2/cmdline'), Buffer.from([0x61, 0xff, 0xc0, 0x00, 0x62]))
  proc.addProcess({ pid: 3, name: 'zombie', state: 'Z' })
  proc.addProcess({ pid: 4, name: 'long', args: ['€'.repeat(5000)] })
  proc.addProcess({ pid: 5, name: 'gone' })
  rmSync(join(proc.root, '5/cmdline'))
  await take(START)
  const find = (pid: number) => apply(reports).processes.get(pid)?.process.slice(4)
  t.strictSame(find(1), ['a) R 9 (\uFFFD\uFFFD[2J', 'line 1\uFFFDline 2 \uFFFD[31m \uFFFDé😀'])
  t.strictSame(find(2), ['bytes', 'a\uFFFD\uFFFD b'])
  t.strictSame(find(3), ['zombie', '[zombie]'])
  t.strictSame(find(4), ['long', '€'.repeat(256)])
  t.strictSame(find(5), ['gone', '[gone]'], 'the process exited while it was read')
})

t.test('shows the number of a user without a usable name', async (t) => {
  const { proc, take, reports, passwdPath } = setUp(t)
  for (const uid of [0, 1000, 1001, 1002]) proc.addProcess({ pid: 10 + uid, uid })
  const users = async (at: number) => {
    await take(at)
    const entries = [...apply(reports).processes.values()].sort((a, b) => a.process[0] - b.process[0])
    return entries.map(({ process }) => process[3])
  }
  appendFileSync(passwdPath, `${'x'.repeat(99)}:x:1001:::\nroot2:x:0:::\nbad\u001b:x:1002:::\n`)
  t.strictSame(await users(START), ['root', 'box', '1001', '1002'])
  appendFileSync(passwdPath, 'eve:x:1001:::\n')
  t.strictSame(await users(START + MINUTE), ['root', 'box', 'eve', '1002'], 'after a change of the file')
  rmSync(passwdPath)
  t.strictSame(await users(START + 2 * MINUTE), ['0', '1000', '1001', '1002'])
})

t.test(
  'shows the numbers of users where the agent may not read their names',
  { skip: process.getuid?.() === 0 && 'root can read every file' },
  async (t) => {
    const { proc, take, reports, passwdPath } = setUp(t)
    proc.addProcess({ pid: 10, uid: 1000 })
    chmodSync(passwdPath, 0o000)
    await take(START)
    t.equal(apply(reports).processes.get(10)?.process[3], '1000')
  },
)

const createProcess = (fields: Partial<BoxProcess>): BoxProcess => ({
  ...{ pid: 1, ppid: 1, pgrp: 1, session: 1, foregroundGroup: -1, name: 'a' },
  ...{ state: 'S', isKernelThread: false },
  ...{ cpuTicks: 0, childrenCpuTicks: 0, threads: 1, startTime: 500, uid: 1000 },
  ...{ rssBytes: 4096, anonymousBytes: 4096 },
  ...fields,
})

t.test('lists the 1000 processes with the most CPU usage, then with the most memory', async (t) => {
  const list = Array.from({ length: 1003 }, (_, i) => createProcess({ pid: i, rssBytes: i * 4096 }))
  list[2] = createProcess({ pid: 2, cpuTicks: 100_000 })
  const { take, reports } = setUp(t, list)
  await take(START)
  const { processes, total } = apply(reports)
  t.equal(total, 1003)
  t.equal(processes.size, 1000)
  t.strictSame(
    [0, 1, 2, 3, 4].map((pid) => processes.has(pid)),
    [false, false, true, false, true],
  )
})

for (const [kind, arg] of Object.entries({
  'quotes, which are escaped twice': '"\\'.repeat(200),
  'characters of three bytes': '€'.repeat(300),
  'control characters': '\u0001'.repeat(300),
}))
  t.test(`the report stays within its bounds with command lines of ${kind}`, async (t) => {
    const pids = Array.from({ length: 1000 }, (_, i) => 4_000_000 + i)
    const list = pids.map((pid) => createProcess({ pid, ppid: pid, name: '"\\'.repeat(7) }))
    const { proc, take, reports, setPorts } = setUp(t, list)
    setPorts(pids.map((pid, i) => [64_000 + i, pid, '"\\'.repeat(7)]))
    proc.addProcess({ pid: 1, args: [arg] })
    for (const pid of pids) symlinkSync('1', join(proc.root, String(pid)))
    const report = await take(START)
    t.ok(durableReportSchema.safeParse(report).success)
    t.ok(Buffer.byteLength(JSON.stringify(report)) < TUNNEL_LIMITS.reportBytes - 1024)
    t.ok(apply(reports).processes.size >= 500)
    t.strictSame(
      parseDelta(await take(START + MINUTE)).added,
      [],
      'command lines are the same in the next one',
    )
  })
