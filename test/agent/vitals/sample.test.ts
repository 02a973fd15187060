// The vitals a box shows: of its allotment where it has one of its own, else of the machine.
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import t, { type Test } from 'tap'
import { createActivity } from '../../../agent/vitals/activity.ts'
import { createVitalsSampler } from '../../../agent/vitals/sample.ts'
import { vitals } from '../../../shared/api/boxes.ts'
import { systemClock } from '../../../shared/clock.ts'
import { fakeProc } from './proc-fixture.ts'

const ALLOTMENT = { BOXWOOD_CPUS: '2', BOXWOOD_MEMORY_BYTES: String(1000 * 1024), BOXWOOD_PRIVATE_PIDS: '1' }

function sampled(
  t: Test,
  env: Record<string, string>,
  prepare?: (proc: ReturnType<typeof fakeProc>) => void,
) {
  const proc = fakeProc(t)
  prepare?.(proc)
  let now = 1_000_000
  const clock = { now: () => now }
  const activity = createActivity(clock)
  const sampler = createVitalsSampler({ procRoot: proc.root, home: '/', clock, activity, env })
  return {
    proc,
    activity,
    pass(seconds: number) {
      now += seconds * 1000
    },
    sample: async () => vitals.parse(await sampler.sample()),
  }
}

t.test('of the machine: busy ticks since the last sample, and memory that is not available', async (t) => {
  const { proc, sample, pass } = sampled(t, {}, (proc) => proc.cpu(1000, 0, 1000, 5000, 0, 0, 0, 0))
  proc.cpu(1010, 5, 1005, 5070, 10, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 20, mem_pct: 25 })
  pass(10)
  proc.cpu(1010, 5, 1005, 5170, 10, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 0 })
  pass(10)
  proc.cpu(1010, 5, 1006, 5172, 10, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 33.3 })
})

t.test('of the allotment: the processes of the box against its processors and its memory', async (t) => {
  const { proc, sample, pass } = sampled(t, ALLOTMENT, (proc) => {
    proc.process({ pid: 1, cpu: 100 })
    proc.uptime(1000)
  })
  proc.process({ pid: 1, cpu: 100, anonKb: 100 })
  proc.process({ pid: 7, cpu: 500, anonKb: 50, shmemKb: 25 })
  proc.uptime(1010)
  t.match(await sample(), { cpu_pct: 25, mem_pct: 17.5 })
  // It ended, and its parent has waited for it: what it used since then still counts.
  proc.end(7)
  proc.process({ pid: 1, cpu: 100, childrenCpu: 600 })
  proc.uptime(1020)
  pass(10)
  t.match(await sample(), { cpu_pct: 5, mem_pct: 0 })
})

t.test('never below 0 or above 100', async (t) => {
  const { proc, sample, pass } = sampled(t, ALLOTMENT, (proc) => proc.process({ pid: 1, cpu: 100 }))
  proc.process({ pid: 1, cpu: 90_000, anonKb: 5000 })
  proc.uptime(1001)
  t.match(await sample(), { cpu_pct: 100, mem_pct: 100 })
  pass(10)
  proc.process({ pid: 1, cpu: 10 })
  proc.uptime(1002)
  t.match(await sample(), { cpu_pct: 0, mem_pct: 0 })
})

t.test('an allotment says nothing where the processes of others are seen too', async (t) => {
  const { proc, sample } = sampled(t, { ...ALLOTMENT, BOXWOOD_PRIVATE_PIDS: '0' })
  proc.cpu(50, 0, 0, 50, 0, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 50, mem_pct: 25 })
})

t.test('who asks again at once gets the same figures, and a true idle time', async (t) => {
  const { proc, sample, pass, activity } = sampled(t, {})
  proc.cpu(50, 0, 0, 50, 0, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 50, idle_for_sec: 0 })
  pass(0.9)
  proc.cpu(150, 0, 0, 50, 0, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 50 })
  pass(30)
  t.match(await sample(), { cpu_pct: 100, idle_for_sec: 30 })
  const end = activity.begin()
  pass(60)
  t.match(await sample(), { idle_for_sec: 0 })
  end()
  end()
  pass(5)
  t.match(await sample(), { idle_for_sec: 5 })
})

t.test('the real /proc gives vitals of the documented shape', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  const deps = { home: homedir(), clock: systemClock, activity: createActivity(systemClock) }
  const mine = { HOME: process.env.HOME ?? '' }
  for (const env of [mine, { ...mine, ...ALLOTMENT }]) {
    const sample = vitals.parse(await createVitalsSampler({ ...deps, env }).sample())
    t.ok(sample.mem_pct > 0 && sample.disk_pct > 0, JSON.stringify(sample))
  }
  const all = createVitalsSampler({ ...deps, env: { BOXWOOD_PRIVATE_PIDS: '1' } })
  t.ok((await all.sample()).listeners_count >= 1)
})
