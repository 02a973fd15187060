// A box that shares the kernel with others: its figures are those of its own processes, and never those of the host.
import t from 'tap'
import { AGENT_PID, BOX, NAMESPACED, startFakeBox } from './support.ts'

const KiB = 1024

t.test('CPU is the time of the processes, relative to the CPUs of the tier', async (t) => {
  const { proc, sample } = await startFakeBox(t, NAMESPACED, (proc) => {
    proc.addProcess({ pid: 1, cpu: 100 })
    proc.setCpu(90_000, 0, 0, 0, 0, 0, 0, 0)
  })
  proc.setCpu(99_000, 0, 0, 0, 0, 0, 0, 0)
  proc.addProcess({ pid: 1, cpu: 100 })
  proc.addProcess({ pid: 7, cpu: 1500 })
  t.match((await sample()).values, { cpu_pct: 25, cpu_count: 2 }, 'a new process counts from its start')
  // Process 7 used 300 more ticks, exited and was reaped.
  proc.removeProcess(7)
  proc.addProcess({ pid: 1, cpu: 100, childrenCpu: 1800 })
  t.match((await sample()).values, { cpu_pct: 5 })
  t.match((await sample()).values, { cpu_pct: 0 })
})

t.test('CPU of processes that start and exit between two samples counts', async (t) => {
  const { proc, sample } = await startFakeBox(t, NAMESPACED, (proc) => proc.addProcess({ pid: 1 }))
  proc.addProcess({ pid: 1, childrenCpu: 600 })
  t.match((await sample()).values, { cpu_pct: 10 })
})

t.test(
  'an exited process that no process of the box has reaped does not hide the CPU of others',
  async (t) => {
    const { proc, sample } = await startFakeBox(t, NAMESPACED, (proc) => {
      proc.addProcess({ pid: 10, ppid: 1, cpu: 50_000 })
      proc.addProcess({ pid: 11, ppid: 1 })
      // Its parent ignores SIGCHLD, so the kernel adds its time to no process.
      proc.addProcess({ pid: 12, ppid: 11, cpu: 50_000 })
    })
    proc.removeProcess(10)
    proc.removeProcess(12)
    proc.addProcess({ pid: 11, ppid: 1, cpu: 600 })
    t.match((await sample()).values, { cpu_pct: 10 })
  },
)

t.test('a process with the pid of an exited one is another process', async (t) => {
  const { proc, sample } = await startFakeBox(t, NAMESPACED, (proc) => {
    proc.addProcess({ pid: 1, ppid: 0 })
    proc.addProcess({ pid: 7, ppid: 1, cpu: 5000, start: 600 })
  })
  proc.addProcess({ pid: 1, ppid: 0, childrenCpu: 5000 })
  proc.addProcess({ pid: 7, ppid: 1, cpu: 600, start: 700 })
  t.match((await sample()).values, { cpu_pct: 10 })
})

t.test('percentages are between 0 and 100', async (t) => {
  const { proc, sample, vitals } = await startFakeBox(t, NAMESPACED, (proc) =>
    proc.addProcess({ pid: 1, cpu: 90 }),
  )
  proc.addProcess({ pid: 1, cpu: 90_000, anonKb: 5000 })
  t.match((await sample()).values, { cpu_pct: 100, mem_used_bytes: 5000 * KiB })
  t.match(vitals(), { cpu_pct: 100, mem_pct: 100 })
  proc.addProcess({ pid: 1, cpu: 10 })
  t.match((await sample()).values, { cpu_pct: 0 }, 'a counter that went back')
})

t.test('memory is the anonymous and shared memory of the processes', async (t) => {
  const { proc, sample, vitals } = await startFakeBox(t, NAMESPACED)
  proc.addProcess({ pid: 1, anonKb: 100 })
  proc.addProcess({ pid: 7, anonKb: 50, shmemKb: 25 })
  t.match((await sample()).values, { mem_used_bytes: 175 * KiB, mem_total_bytes: 1000 * KiB })
  t.equal(vitals().mem_pct, 17.5)
})

t.test('disk throughput is that of the processes, also of exited ones', async (t) => {
  const { proc, sample, disk } = await startFakeBox(t, NAMESPACED, (proc) => {
    proc.addProcess({ pid: 1, ppid: 0, io: [1000, 2000] })
    proc.addProcess({ pid: 7, io: [500, 0] })
  })
  proc.addProcess({ pid: 7, io: [3500, 60_000] })
  t.match((await sample()).values, { disk_read_bytes_per_sec: 100, disk_write_bytes_per_sec: 2000 })
  proc.removeProcess(7)
  proc.addProcess({ pid: 1, ppid: 0, io: [1000 + 3500, 2000 + 90_000] })
  t.match((await sample()).values, { disk_read_bytes_per_sec: 0, disk_write_bytes_per_sec: 1000 })
  t.same(disk.written, [0, 60_000, 90_000], 'the meter of the disk space gets what was written')
})

t.test(
  'disk throughput is null where no counters are readable, and skips unreadable processes',
  async (t) => {
    const { proc, sample } = await startFakeBox(t, NAMESPACED, (proc) => proc.addProcess({ pid: 1 }))
    t.match((await sample()).values, { disk_read_bytes_per_sec: null, disk_write_bytes_per_sec: null })
    proc.addProcess({ pid: 1, io: [9_000_000, 0] })
    await sample()
    proc.addProcess({ pid: 1, io: [9_003_000, 0] })
    proc.addProcess({ pid: 5 })
    t.match(
      (await sample()).values,
      { disk_read_bytes_per_sec: 100 },
      'what was not readable before is the baseline',
    )
  },
)

t.test('processes that vanish during the reading are no error', async (t) => {
  const { proc, sample } = await startFakeBox(t, NAMESPACED)
  proc.addProcess({ pid: 1, anonKb: 4 })
  proc.addProcess({ pid: 9, state: 'Z' })
  proc.write('1/io', 'unexpected')
  t.match((await sample()).values, { process_count: 1, mem_used_bytes: 4 * KiB, listener_count: 3 })
})

t.test('has no load, no devices and no file systems of the host', async (t) => {
  const { sample, disk, vitals } = await startFakeBox(t, NAMESPACED, (proc) => {
    proc.write('loadavg', '9.00 9.00 9.00 1/1 1\n')
    proc.setInterfaces(['lo', 1, 1], ['eth0', 1, 1])
  })
  t.match(await sample(), {
    values: { load1: null, load5: null, load15: null },
    fs: [{ mount: '/home/box', used_bytes: null, total_bytes: 10_000, read_bytes_per_sec: null }],
    ifaces: [],
  })
  t.equal(vitals().disk_pct, null)
  disk.used = 2500
  t.match(await sample(), { fs: [{ used_bytes: 2500, total_bytes: 10_000, write_bytes_per_sec: null }] })
  t.equal(vitals().disk_pct, 25)
})

t.test('has the interfaces of its own network', async (t) => {
  const { proc, sample } = await startFakeBox(t, { ...NAMESPACED, BOXWOOD_NETWORK: 'own' }, (proc) =>
    proc.setInterfaces(['lo', 1000, 1000], ['tap0', 5000, 600]),
  )
  proc.setInterfaces(['lo', 1300, 1300], ['tap0', 305_000, 3600], ['dummy0', 7, 7])
  t.same((await sample()).ifaces, [
    { name: 'tap0', rx_bytes_per_sec: 10_000, tx_bytes_per_sec: 100 },
    { name: 'lo', rx_bytes_per_sec: 10, tx_bytes_per_sec: 10 },
    { name: 'dummy0', rx_bytes_per_sec: null, tx_bytes_per_sec: null },
  ])
  proc.setInterfaces(['lo', 5, 5], ['tap0', 305_000, 3600])
  t.match(
    (await sample()).ifaces.find(({ name }) => name === 'lo'),
    { rx_bytes_per_sec: null },
    'an interface that was created again',
  )
})

t.test('at level process, counts only the processes of the box', async (t) => {
  const { BOXWOOD_PRIVATE_PIDS: _, ...env } = NAMESPACED
  const { proc, sample } = await startFakeBox(t, env, (proc) => {
    proc.addProcess({ pid: 10, env: [`BOXWOOD_BOX=${BOX}`], io: [0, 0] })
    proc.addProcess({ pid: 20, env: ['BOXWOOD_BOX=other'], io: [0, 0] })
  })
  proc.addProcess({ pid: 10, env: [`BOXWOOD_BOX=${BOX}`], cpu: 600, anonKb: 100, io: [0, 3000] })
  proc.addProcess({ pid: 20, env: ['BOXWOOD_BOX=other'], cpu: 3000, anonKb: 700, io: [0, 90_000] })
  t.match(await sample(), {
    values: {
      ...{ cpu_pct: 10, mem_used_bytes: 100 * KiB, mem_total_bytes: 1000 * KiB, process_count: 1 },
      ...{ disk_write_bytes_per_sec: 100, load1: null },
    },
  })
})

t.test('at level process with its own uid, counts every process of this uid', async (t) => {
  const { BOXWOOD_PRIVATE_PIDS: _, ...env } = NAMESPACED
  const ownUid = process.getuid?.() ?? 0
  const { proc, sample } = await startFakeBox(t, { ...env, BOXWOOD_OWN_UID: '1' })
  proc.addProcess({ pid: 10, uid: ownUid, cpu: 600 })
  proc.addProcess({ pid: 20, uid: ownUid + 1, cpu: 3000 })
  t.match((await sample()).values, { cpu_pct: 10, process_count: 1 })
})

t.test('without limits of memory and disk, percentages are null', async (t) => {
  const { sample, vitals, disk } = await startFakeBox(t, { BOXWOOD_CPUS: '1', BOXWOOD_PRIVATE_PIDS: '1' })
  disk.used = 5
  t.match(await sample(), { values: { mem_total_bytes: null }, fs: [{ used_bytes: 5, total_bytes: null }] })
  t.match(vitals(), { mem_pct: null, disk_pct: null })
})

t.test('rates are the means since the previous sample, and null over less than 2 seconds', async (t) => {
  const { proc, sample, vitals } = await startFakeBox(t, NAMESPACED, (proc) =>
    proc.addProcess({ pid: 1, io: [0, 0] }),
  )
  t.match(vitals(), { cpu_pct: null, listeners_count: 3 })
  proc.addProcess({ pid: 1, cpu: 100, io: [0, 5000] })
  t.match((await sample(1.9)).values, { cpu_pct: null, disk_write_bytes_per_sec: null })
  proc.addProcess({ pid: 1, cpu: 300, io: [0, 15_000] })
  t.match((await sample(10)).values, { cpu_pct: 10, disk_write_bytes_per_sec: 1000 })
  proc.addProcess({ pid: 1, cpu: 2300, io: [0, 15_000] })
  t.match((await sample(100)).values, { cpu_pct: 10 })
})

t.test('the box is active while its processes use the CPU, and not because of the agent', async (t) => {
  const { proc, sample, vitals, disk } = await startFakeBox(t, NAMESPACED, (proc) => {
    proc.addProcess({ pid: 1, ppid: 0 })
    proc.addProcess({ pid: AGENT_PID, ppid: 1 })
    proc.addProcess({ pid: 50, ppid: 1 })
  })
  await sample()
  t.equal(vitals().idle_for_sec, 30)
  disk.helperPid = 60
  proc.addProcess({ pid: AGENT_PID, ppid: 1, cpu: 3000 })
  proc.addProcess({ pid: 60, ppid: AGENT_PID, cpu: 3000 })
  proc.addProcess({ pid: 50, ppid: 1, cpu: 140 })
  await sample()
  t.equal(vitals().idle_for_sec, 60, 'the agent, du, and 4.7 % of a CPU')
  disk.helperPid = undefined
  proc.removeProcess(60)
  proc.addProcess({ pid: AGENT_PID, ppid: 1, cpu: 3000, childrenCpu: 6000 })
  await sample()
  t.equal(vitals().idle_for_sec, 90, 'a reaped du')
  proc.addProcess({ pid: 50, ppid: 1, cpu: 290 })
  await sample()
  t.equal(vitals().idle_for_sec, 0, '5 % of a CPU')
})

t.test('requests and running operations reset the idle time at once', async (t) => {
  const { activity, advance, vitals } = await startFakeBox(t, NAMESPACED)
  advance(12)
  t.equal(vitals().idle_for_sec, 12)
  const finish = activity.startOperation()
  advance(60)
  t.equal(vitals().idle_for_sec, 0)
  finish()
  finish()
  advance(5)
  t.equal(vitals().idle_for_sec, 5)
})
