// Disk sizes and numbers of files of boxes that share a disk: a box above the limits of its tier is suspended, and can be woken
// to delete files.
import t, { type Test } from 'tap'
import { createDiskMonitor, groupByFileSystem } from '../../../../coordinator/boxes/lifecycle/disk-monitor.ts'
import {
  MeasurementTimeoutError,
  type Provider,
  type SharedDisk,
} from '../../../../coordinator/providers/provider.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { DEFAULT_REGION } from '../../../../shared/tiers.ts'
import { FakeInfrastructure } from '../../../support/fake-infrastructure.ts'
import { createFakeReplica } from '../../../support/replica.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { silentLog } from '../../../support/tunnel.ts'

const GB = 1000 ** 3
const MINUTE_MS = 60_000

const MILLION = 1_000_000

/** Boxes that share a disk of 1000 GB with space for 60 million files. */
async function createBoxes(t: Test, names: string[]) {
  const db = await sqliteForTest(t)
  const lifecycle = await createRestartableLifecycle(t, db)
  const { schedule } = await lifecycle.startLifecycle()
  const disk = {
    freeBytes: 900 * GB,
    freeInodes: 50 * MILLION,
    sizes: new Map<string, number>(),
    inodes: new Map<string, number>(),
    uncounted: new Set<string>(),
    measured: 0,
    reserved: 0,
  }
  const ids: string[] = []
  for (const name of names) {
    const { id } = await lifecycle.boxes.create(lifecycle.owner, { name, tier: 'nano' })
    await lifecycle.waitForState(id, 'running')
    ids.push(id)
  }
  let elapsedMs = 0
  const sharedDisk: SharedDisk = {
    fileSystem: 'test',
    inodeReserve: {
      async restore() {
        disk.reserved = 2000
      },
      async release() {
        disk.reserved = 0
      },
    },
    readSpace: async () => ({
      bytes: { free: disk.freeBytes, total: 1000 * GB },
      inodes: { free: disk.freeInodes, total: 60 * MILLION },
    }),
    async measure(boxId) {
      disk.measured += 1
      if (disk.uncounted.has(boxId)) throw new MeasurementTimeoutError('too many files')
      return { bytes: disk.sizes.get(boxId) ?? 0, inodes: disk.inodes.get(boxId) ?? 0 }
    },
  }
  const monitor = createDiskMonitor({
    db,
    clock: { now: () => systemClock.now() + elapsedMs },
    log: silentLog,
    replica: createFakeReplica(),
    schedule,
    disks: new Map([[DEFAULT_REGION, sharedDisk]]),
  })
  const [first = '', second = ''] = ids
  const advance = (ms: number) => {
    elapsedMs += ms
  }
  return { ...lifecycle, disk, monitor, first, second, advance }
}

t.test('suspends a box that is larger than its tier allows', async (t) => {
  const { disk, monitor, first, second, waitForState, getDetail } = await createBoxes(t, ['big', 'small'])
  disk.sizes.set(first, 12 * GB).set(second, 9 * GB)
  await monitor.check()
  const { box, events } = await waitForState(first, 'suspended')
  t.equal(box.desiredState, 'suspended')
  t.match(events[0], {
    actor: 'system',
    reason: /^uses 12\.0 GB of its 10 GB of disk: wake the box and delete/,
  })
  t.match(await getDetail(second), { box: { observedState: 'running' }, job: null })
})

t.test('does not measure the boxes of another host', async (t) => {
  const { db, disk, monitor, first, second, waitForState, getDetail } = await createBoxes(t, ['big', 'other'])
  await db.updateTable('boxes').set({ host: 'hst_other' }).where('id', '=', second).execute()
  disk.sizes.set(first, 12 * GB).set(second, 12 * GB)
  await monitor.check()
  await waitForState(first, 'suspended')
  t.match(await getDetail(second), { box: { desiredState: 'running' } })
  t.equal(disk.measured, 1)
})

t.test('a woken box has time to delete files, but may not grow', async (t) => {
  const { disk, monitor, first, owner, boxes, waitForState, getDetail, advance } = await createBoxes(t, [
    'big',
  ])
  const wake = async () => {
    await boxes.wake(owner, first)
    await waitForState(first, 'running')
  }
  const checkAgain = async () => {
    disk.freeBytes -= 2 * GB
    await monitor.check()
  }
  disk.sizes.set(first, 12 * GB)
  await checkAgain()
  await waitForState(first, 'suspended')

  await wake()
  await checkAgain()
  t.match(await getDetail(first), { box: { desiredState: 'running' } })
  disk.sizes.set(first, 14 * GB)
  await checkAgain()
  await waitForState(first, 'suspended')

  await wake()
  advance(11 * MINUTE_MS)
  await checkAgain()
  await waitForState(first, 'suspended')

  await wake()
  disk.sizes.set(first, 8 * GB)
  advance(11 * MINUTE_MS)
  await checkAgain()
  t.match(await getDetail(first), { box: { desiredState: 'running' } })
})

t.test('suspends the box that fills the disk, even below its own size', async (t) => {
  const { disk, monitor, first, second, waitForState, getDetail } = await createBoxes(t, ['quick', 'idle'])
  disk.sizes.set(first, 1 * GB).set(second, 9 * GB)
  disk.freeBytes = 1 * GB
  await monitor.check()
  t.match(await getDetail(first), { box: { desiredState: 'running' } }, 'no growth is known yet')
  disk.sizes.set(first, 1.5 * GB)
  disk.freeBytes = 0.5 * GB
  await monitor.check()
  const { events } = await waitForState(first, 'suspended')
  t.match(events[0]?.reason, /only 0\.5 GB free, and this box grew by 0\.5 GB/)
  t.match(await getDetail(second), { box: { desiredState: 'running' } })
  await monitor.check()
  t.match(await getDetail(second), { box: { desiredState: 'running' } }, 'a box that does not grow continues')
})

t.test('suspends a box with more files than its tier allows', async (t) => {
  const { disk, monitor, first, second, waitForState, getDetail } = await createBoxes(t, ['many', 'few'])
  disk.inodes.set(first, 700_000).set(second, 500_000)
  await monitor.check()
  const { events } = await waitForState(first, 'suspended')
  t.match(events[0]?.reason, /^has 700000 of its 600000 files and directories: wake the box and delete/)
  t.match(await getDetail(second), { box: { observedState: 'running' }, job: null })
})

t.test('suspends the box that creates most files when the disk has space for few', async (t) => {
  const { disk, monitor, first, second, waitForState, getDetail } = await createBoxes(t, ['quick', 'idle'])
  disk.inodes.set(first, 1000).set(second, 400_000)
  await monitor.check()
  disk.inodes.set(first, 300_000)
  disk.freeInodes = 400_000
  await monitor.check()
  const { events } = await waitForState(first, 'suspended')
  t.match(events[0]?.reason, /space for only 400000 more files, and this box created 299000: remove files/)
  await monitor.check()
  t.match(await getDetail(second), { box: { desiredState: 'running' } })
})

t.test('releases the reserved inodes once the box that has used all others is suspended', async (t) => {
  const { disk, monitor, first, waitForState } = await createBoxes(t, ['quick', 'idle'])
  await monitor.check()
  t.equal(disk.reserved, 2000)
  disk.inodes.set(first, 50 * MILLION)
  disk.freeInodes = 0
  await monitor.check()
  t.equal(disk.reserved, 2000, 'the box may still run')
  await waitForState(first, 'suspended')
  await monitor.check()
  t.equal(disk.reserved, 0)
  disk.freeInodes = 50 * MILLION
  await monitor.check()
  t.equal(disk.reserved, 2000)
})

t.test('measures the boxes when many files were created', async (t) => {
  const { disk, monitor } = await createBoxes(t, ['fig'])
  await monitor.check()
  disk.freeInodes -= 50_000
  await monitor.check()
  t.equal(disk.measured, 1)
  disk.freeInodes -= 20_000
  await monitor.check()
  t.equal(disk.measured, 2)
})

t.test('measures the boxes only when the disk has filled, and at long intervals', async (t) => {
  const { disk, monitor, advance } = await createBoxes(t, ['fig'])
  await monitor.check()
  t.equal(disk.measured, 1)
  disk.freeBytes -= GB / 2
  await monitor.check()
  t.equal(disk.measured, 1)
  disk.freeBytes -= GB
  await monitor.check()
  t.equal(disk.measured, 2)
  advance(11 * MINUTE_MS)
  await monitor.check()
  t.equal(disk.measured, 3)
})

t.test('regions on one file system are monitored together, others alone', async (t) => {
  const createProvider = (fileSystem?: string): Provider => ({
    ...new FakeInfrastructure().provider,
    ...(fileSystem === undefined
      ? {}
      : {
          sharedDisk: {
            fileSystem,
            measure: async () => ({ bytes: 0, inodes: 0 }),
            readSpace: async () => ({ bytes: { free: 0, total: 0 }, inodes: null }),
          },
        }),
  })
  const groups = groupByFileSystem(
    new Map([
      ['us-west-2', createProvider('a')],
      ['us-east-1', createProvider('b')],
      ['us-east-2', createProvider()],
      ['eu-central-1', createProvider('a')],
    ]),
  )
  t.same(
    groups.map((disks) => [...disks.keys()]),
    [['us-west-2', 'eu-central-1'], ['us-east-1']],
  )
})

t.test('suspends a box whose files cannot be counted only when the disk is almost full', async (t) => {
  const { disk, monitor, first, second, waitForState, getDetail } = await createBoxes(t, ['endless', 'small'])
  disk.uncounted.add(first)
  disk.sizes.set(second, GB)
  await monitor.check()
  t.equal((await getDetail(first)).box.desiredState, 'running')
  disk.freeBytes = GB
  await monitor.check()
  const { events } = await waitForState(first, 'suspended')
  t.match(events[0], {
    actor: 'system',
    reason: /almost full, and the files of this box could not be counted/,
  })
  t.equal((await getDetail(second)).box.desiredState, 'running')
})
