// A box that is a machine of its own, and a box in a container with limits.
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createTempDir } from '../../../support/temp-dir.ts'
import type { createFakeProc } from '../fake-proc.ts'
import { startFakeBox } from './support.ts'

const KiB = 1024
type FakeProc = ReturnType<typeof createFakeProc>

/** A machine with the disk vda, a partition, a device-mapper volume on it, and a loop device. */
function setDisks(proc: FakeProc, [read, written]: [number, number]): void {
  const row = (minor: number, name: string) =>
    ` 254 ${minor} ${name} 9 9 ${read / 512} 9 9 9 ${written / 512} 9 9 9 9\n`
  proc.write('diskstats', [row(0, 'vda'), row(1, 'vda1'), row(2, 'dm-0'), row(3, 'loop0')].join(''))
}

function prepareMachine(proc: FakeProc, mounts: string[]): void {
  mkdirSync(join(proc.root, 'self'))
  proc.write('self/mountinfo', mounts.map((mount, i) => `${20 + i} 1 ${mount}\n`).join(''))
  proc.write('loadavg', '0.50 1.25 2.00 1/100 7\n')
  proc.setCpu(1000, 0, 1000, 5000, 0, 0, 0, 0)
  proc.setInterfaces(['eth0', 0, 0])
  setDisks(proc, [0, 0])
}

t.test('a machine has the figures of the machine', async (t) => {
  const { proc, sample, vitals } = await startFakeBox(t, {}, (proc) =>
    prepareMachine(proc, [
      '254:1 / / rw - ext4 /dev/vda1 rw',
      '254:1 /srv /bind rw - ext4 /dev/vda1 rw',
      '0:5 / /proc rw - proc proc rw',
      '0:9 / /mnt/nfs rw - nfs4 server:/ rw',
      '7:0 / /snap/x ro - squashfs /dev/loop0 ro',
      '254:7 / /gone\\040away rw - ext4 /dev/vdb rw',
    ]),
  )
  proc.setCpu(1500, 0, 1100, 7000, 100, 0, 0, 500)
  proc.setInterfaces(['eth0', 30_000, 60_000])
  setDisks(proc, [30_720, 61_440])
  const sample1 = await sample()
  const { blocks, bsize } = statfsSync('/')
  t.match(sample1, {
    values: {
      // 600 ticks of 30 s, on the one CPU of this fake machine.
      ...{ cpu_pct: 20, cpu_count: 1, mem_used_bytes: 250 * KiB, mem_total_bytes: 1000 * KiB },
      ...{ load1: 0.5, load5: 1.25, load15: 2, listener_count: 3 },
      ...{ disk_read_bytes_per_sec: 1024, disk_write_bytes_per_sec: 2048 },
    },
    ifaces: [{ name: 'eth0', rx_bytes_per_sec: 1000, tx_bytes_per_sec: 2000 }],
  })
  t.same(
    sample1.fs.map(({ mount }) => mount),
    ['/'],
    'one entry per device that can be read',
  )
  t.match(sample1.fs, [{ read_bytes_per_sec: 1024, write_bytes_per_sec: 2048 }])
  const total = sample1.fs[0]?.total_bytes ?? 0
  t.ok(total > 0 && total <= blocks * bsize)
  t.equal(vitals().mem_pct, 25)
})

t.test('a sample has at most 16 interfaces: those with the most traffic', async (t) => {
  const { proc, sample } = await startFakeBox(t, {}, (proc) => prepareMachine(proc, []))
  proc.setInterfaces(...Array.from({ length: 40 }, (_, i) => [`veth${i}`, i, i] as [string, number, number]))
  const { ifaces } = await sample()
  t.same(
    ifaces.map(({ name }) => name),
    Array.from({ length: 16 }, (_, i) => `veth${39 - i}`),
  )
})

function createCgroups(t: Test) {
  const root = createTempDir(t, 'cgroup')
  return {
    root,
    write(files: Record<string, string | number>) {
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(root, name)), { recursive: true })
        writeFileSync(join(root, name), `${content}\n`)
      }
    },
  }
}

function prepareContainer(proc: FakeProc, cgroups: string): void {
  prepareMachine(proc, ['254:1 / / rw - ext4 /dev/vda1 rw'])
  proc.write('self/cgroup', cgroups)
}

t.test('a container has the figures and limits of its cgroup (version 2)', async (t) => {
  const { root, write } = createCgroups(t)
  write({
    'cpu.max': '150000 100000',
    'cpu.stat': 'usage_usec 1000000\nuser_usec 1',
    'memory.max': 1_024_000,
    'memory.current': 500_000,
    'memory.stat': 'anon 1\nfile 300000\nshmem 100000\nslab_reclaimable 50000',
  })
  const { proc, sample } = await startFakeBox(t, {}, (proc) => prepareContainer(proc, '0::/\n'), {
    cgroupRoot: root,
  })
  write({ 'cpu.stat': 'usage_usec 10000000\nuser_usec 1' })
  proc.setCpu(9_000_000, 0, 0, 0, 0, 0, 0, 0)
  t.match(await sample(), {
    values: {
      ...{ cpu_pct: 20, cpu_count: 1.5, mem_used_bytes: 250_000, mem_total_bytes: 1_024_000 },
      ...{ load1: null, load5: null, load15: null, disk_read_bytes_per_sec: null },
    },
    fs: [{ mount: '/home/box', total_bytes: null, read_bytes_per_sec: null }],
    ifaces: [],
  })
})

t.test('a container has the figures and limits of its cgroups (version 1)', async (t) => {
  const { root, write } = createCgroups(t)
  write({
    'cpu/docker/1/cpu.cfs_quota_us': 50_000,
    'cpu/docker/1/cpu.cfs_period_us': 100_000,
    'cpuacct/docker/1/cpuacct.usage': 1e9,
    'memory/docker/1/memory.limit_in_bytes': 2_048_000,
    'memory/docker/1/memory.usage_in_bytes': 500_000,
    'memory/docker/1/memory.stat': 'cache 1\ntotal_cache 200000\ntotal_shmem 50000',
  })
  const cgroups = '3:cpu,cpuacct:/docker/1\n2:memory:/docker/1\n'
  const { sample } = await startFakeBox(t, {}, (proc) => prepareContainer(proc, cgroups), {
    cgroupRoot: root,
  })
  write({ 'cpuacct/docker/1/cpuacct.usage': 4e9 })
  t.match((await sample()).values, {
    ...{ cpu_pct: 20, cpu_count: 0.5, mem_used_bytes: 350_000, mem_total_bytes: 2_048_000 },
  })
})

t.test('cgroups without limits are those of a machine', async (t) => {
  const v1 = createCgroups(t)
  v1.write({
    'cpu/cpu.cfs_quota_us': -1,
    'cpu/cpu.cfs_period_us': 100_000,
    'cpuacct/cpuacct.usage': 5,
    'memory/memory.limit_in_bytes': '9223372036854771712',
  })
  const v2 = createCgroups(t)
  v2.write({
    'cpu.stat': 'usage_usec 5',
    'a/cpu.stat': 'usage_usec 5',
    'a/cpu.max': 'max 100000',
    'a/memory.max': 'max',
  })
  for (const [root, cgroups] of [
    [v1.root, '3:cpu:/\n2:cpuacct:/\n1:memory:/\n'],
    [v2.root, '0::/\n'],
    [v2.root, '0::/a\n'],
  ] as const) {
    const { sample } = await startFakeBox(t, {}, (proc) => prepareContainer(proc, cgroups), {
      cgroupRoot: root,
    })
    t.match((await sample()).values, { load1: 0.5, cpu_count: 1, mem_total_bytes: 1000 * KiB })
  }
})

t.test(
  'a container without limits has its own figures, and the size of its machine (version 2)',
  async (t) => {
    const { root, write } = createCgroups(t)
    write({
      ...{
        'cgroup.type': 'domain',
        'cpu.stat': 'usage_usec 0',
        'cpu.max': 'max 100000',
        'memory.max': 'max',
      },
      ...{ 'memory.current': 5000, 'memory.stat': 'file 1000\nshmem 0' },
      // The service of the agent in a container with an init.
      ...{
        'system.slice/agent.service/cgroup.type': 'domain',
        'system.slice/agent.service/cpu.stat': 'usage_usec 0',
      },
      'system.slice/agent.service/memory.current': 1,
    })
    for (const own of ['0::/\n', '0::/system.slice/agent.service\n']) {
      write({ 'cpu.stat': 'usage_usec 0' })
      const { sample } = await startFakeBox(t, {}, (proc) => prepareContainer(proc, own), {
        cgroupRoot: root,
      })
      write({ 'cpu.stat': 'usage_usec 3000000' })
      t.match((await sample()).values, {
        ...{ load1: null, cpu_pct: 10, cpu_count: 1, mem_used_bytes: 4000, mem_total_bytes: 1000 * KiB },
      })
    }
  },
)

t.test('a memory limit alone: the CPUs are those of the machine', async (t) => {
  const { root, write } = createCgroups(t)
  write({
    ...{ 'cpu.max': 'max 100000', 'cpu.stat': 'usage_usec 0', 'memory.max': 1_024_000 },
    ...{ 'memory.current': 5000, 'memory.stat': 'file 9000\nshmem 0' },
  })
  const { sample } = await startFakeBox(t, {}, (proc) => prepareContainer(proc, '0::/\n'), {
    cgroupRoot: root,
  })
  write({ 'cpu.stat': 'usage_usec 3000000' })
  t.match((await sample()).values, {
    cpu_pct: 10,
    cpu_count: 1,
    mem_used_bytes: 0,
    mem_total_bytes: 1_024_000,
  })
})

t.test('a container with only one controller has the limit of that controller', async (t) => {
  const memoryOnly = createCgroups(t)
  memoryOnly.write({
    ...{ 'cpu.stat': 'usage_usec 0', 'memory.max': 1_024_000 },
    ...{ 'memory.current': 5000, 'memory.stat': 'file 0\nshmem 0' },
  })
  const cpuOnly = createCgroups(t)
  cpuOnly.write({ 'cpu.max': '50000 100000', 'cpu.stat': 'usage_usec 0' })
  for (const [root, values] of [
    [memoryOnly.root, { load1: null, cpu_count: 1, mem_used_bytes: 5000, mem_total_bytes: 1_024_000 }],
    [cpuOnly.root, { load1: null, cpu_count: 0.5, mem_used_bytes: null, mem_total_bytes: 1000 * KiB }],
  ] as const) {
    const { sample } = await startFakeBox(t, {}, (proc) => prepareContainer(proc, '0::/\n'), {
      cgroupRoot: root,
    })
    t.match((await sample()).values, values)
  }
})
