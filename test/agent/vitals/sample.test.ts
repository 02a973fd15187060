// Vitals are relative to the box's resource limits if it has its own PID namespace, otherwise to the machine.
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import t, { type Test } from 'tap'
import { createActivityTracker } from '../../../agent/vitals/activity-tracker.ts'
import { createVitalsSampler } from '../../../agent/vitals/sample.ts'
import { vitalsSchema } from '../../../shared/api/boxes.ts'
import { systemClock } from '../../../shared/clock.ts'
import { createFakeProc } from './fake-proc.ts'

const LIMITS = { BOXWOOD_CPUS: '2', BOXWOOD_MEMORY_BYTES: String(1000 * 1024), BOXWOOD_PRIVATE_PIDS: '1' }

function setUpSampler(
  t: Test,
  env: Record<string, string>,
  prepare?: (proc: ReturnType<typeof createFakeProc>) => void,
) {
  const proc = createFakeProc(t)
  prepare?.(proc)
  let now = 1_000_000
  const clock = { now: () => now }
  const activity = createActivityTracker(clock)
  const sampler = createVitalsSampler({ procRoot: proc.root, home: '/', clock, activity, env })
  return {
    proc,
    activity,
    advanceClock(seconds: number) {
      now += seconds * 1000
    },
    sample: async () => vitalsSchema.parse(await sampler.sample()),
  }
}

t.test('without limits, measures CPU time and memory of the machine', async (t) => {
  const { proc, sample, advanceClock } = setUpSampler(t, {}, (proc) =>
    proc.setCpu(1000, 0, 1000, 5000, 0, 0, 0, 0),
  )
  proc.setCpu(1010, 5, 1005, 5070, 10, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 20, mem_pct: 25 })
  advanceClock(10)
  proc.setCpu(1010, 5, 1005, 5170, 10, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 0 })
  advanceClock(10)
  proc.setCpu(1010, 5, 1006, 5172, 10, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 33.3 })
})

t.test('with limits, measures the processes of the box against them', async (t) => {
  const { proc, sample, advanceClock } = setUpSampler(t, LIMITS, (proc) => {
    proc.addProcess({ pid: 1, cpu: 100 })
    proc.setUptime(1000)
  })
  proc.addProcess({ pid: 1, cpu: 100, anonKb: 100 })
  proc.addProcess({ pid: 7, cpu: 500, anonKb: 50, shmemKb: 25 })
  proc.setUptime(1010)
  t.match(await sample(), { cpu_pct: 25, mem_pct: 17.5 })
  // Process 7 has exited and was reaped: its CPU time is now part of its parent's children time.
  proc.removeProcess(7)
  proc.addProcess({ pid: 1, cpu: 100, childrenCpu: 600 })
  proc.setUptime(1020)
  advanceClock(10)
  t.match(await sample(), { cpu_pct: 5, mem_pct: 0 })
})

t.test('percentages are between 0 and 100', async (t) => {
  const { proc, sample, advanceClock } = setUpSampler(t, LIMITS, (proc) =>
    proc.addProcess({ pid: 1, cpu: 100 }),
  )
  proc.addProcess({ pid: 1, cpu: 90_000, anonKb: 5000 })
  proc.setUptime(1001)
  t.match(await sample(), { cpu_pct: 100, mem_pct: 100 })
  advanceClock(10)
  proc.addProcess({ pid: 1, cpu: 10 })
  proc.setUptime(1002)
  t.match(await sample(), { cpu_pct: 0, mem_pct: 0 })
})

t.test('ignores the limits when the process table is shared with other boxes', async (t) => {
  const { proc, sample } = setUpSampler(t, { ...LIMITS, BOXWOOD_PRIVATE_PIDS: '0' })
  proc.setCpu(50, 0, 0, 50, 0, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 50, mem_pct: 25 })
})

t.test('repeats the last sample within a second, with the current idle time', async (t) => {
  const { proc, sample, advanceClock, activity } = setUpSampler(t, {})
  proc.setCpu(50, 0, 0, 50, 0, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 50, idle_for_sec: 0 })
  advanceClock(0.9)
  proc.setCpu(150, 0, 0, 50, 0, 0, 0, 0)
  t.match(await sample(), { cpu_pct: 50 })
  advanceClock(30)
  t.match(await sample(), { cpu_pct: 100, idle_for_sec: 30 })
  const finish = activity.startOperation()
  advanceClock(60)
  t.match(await sample(), { idle_for_sec: 0 })
  finish()
  finish()
  advanceClock(5)
  t.match(await sample(), { idle_for_sec: 5 })
})

t.test('produces valid vitals from the real /proc', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  const deps = { home: homedir(), clock: systemClock, activity: createActivityTracker(systemClock) }
  const ownEnv = { HOME: process.env.HOME ?? '' }
  for (const env of [ownEnv, { ...ownEnv, ...LIMITS }]) {
    const sample = vitalsSchema.parse(await createVitalsSampler({ ...deps, env }).sample())
    t.ok(sample.mem_pct > 0 && sample.disk_pct > 0, JSON.stringify(sample))
  }
  const sampler = createVitalsSampler({ ...deps, env: { BOXWOOD_PRIVATE_PIDS: '1' } })
  t.ok((await sampler.sample()).listeners_count >= 1)
})
