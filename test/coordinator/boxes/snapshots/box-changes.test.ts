// Snapshots of boxes that are moved or put to sleep meanwhile.
import t from 'tap'
import { enqueueMove } from '../../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import { createJobRow } from '../../../../coordinator/boxes/lifecycle/set-desired-state.ts'
import { isWaitingForSnapshot } from '../../../../coordinator/boxes/sources/sources.ts'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { createProviders } from '../../../../coordinator/providers/regions.ts'
import type { Region } from '../../../../shared/tiers.ts'
import { createHangingFault, FakeInfrastructure } from '../../../support/fake-infrastructure.ts'
import { createRestartableSnapshots } from '../../../support/restartable-snapshots.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

t.test('the files of a box are not removed while they are captured', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, infra, owner, start, createRunningBox, getSnapshots, waitFor, waitForStatus } = harness
  await start()
  const boxId = await createRunningBox()
  const isWaiting = (step: string) => transaction(db, (trx) => isWaitingForSnapshot(trx, boxId, step))
  t.equal(await isWaiting('discard'), false)
  const released = Promise.withResolvers<void>()
  infra.before.capture = () => released.promise
  const { id } = await getSnapshots().service.create(owner, { boxId, name: 'a' })
  await waitFor('the capture', () => infra.countCalls('capture') === 1)
  t.same(await Promise.all(['discard', 'clean_up', 'stop', 'destroy'].map(isWaiting)), [
    true,
    true,
    false,
    false,
  ])
  released.resolve()
  await waitForStatus(id, 'available')
  t.equal(await isWaiting('discard'), false)
})

t.test('a capture waits while the box is moved or its files are discarded', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, infra, owner, start, createRunningBox, getSnapshots, waitForStatus } = harness
  await start()
  const [boxId, otherId] = [await createRunningBox(), await createRunningBox()]
  const { service, onBoxChange } = getSnapshots()
  /** Runs the job of another snapshot: the claims of earlier jobs have then been decided. */
  const waitUntilClaimed = async () => {
    const { id } = await service.create(owner, { boxId: otherId, name: 'other' })
    await waitForStatus(id, 'available')
    t.equal(infra.countCalls('capture', boxId), captures)
  }
  let captures = 0
  await db.updateTable('boxes').set({ desired_region: 'us-east-1' }).where('id', '=', boxId).execute()
  const first = await service.create(owner, { boxId, name: 'first' })
  await waitUntilClaimed()
  await db.updateTable('boxes').set({ desired_region: null }).where('id', '=', boxId).execute()
  onBoxChange()
  await waitForStatus(first.id, 'available')
  captures = 1

  await db
    .insertInto('jobs')
    .values(createJobRow(boxId, 'sleep', 'discard', 'system', 0))
    .execute()
  const second = await service.create(owner, { boxId, name: 'second' })
  await waitUntilClaimed()
  await db.deleteFrom('jobs').execute()
  onBoxChange()
  await waitForStatus(second.id, 'available')
})

t.test(
  'a snapshot of a moved box is in the new region, and leaves nothing in the previous one',
  async (t) => {
    const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
    const { db, infra, owner, start, createRunningBox, getSnapshots, waitForStatus } = harness
    await start()
    const boxId = await createRunningBox()
    infra.after.capture = async () => {
      delete infra.after.capture
      await db.updateTable('boxes').set({ region: 'us-east-1' }).where('id', '=', boxId).execute()
      throw new Error('the connection to the store was lost')
    }
    const { id, region } = await getSnapshots().service.create(owner, { boxId, name: 'a' })
    t.equal(region, 'us-west-2')
    t.match(await waitForStatus(id, 'available'), { region: 'us-east-1' })
    t.same(
      infra.calls.filter((call) => /capture|removeArchive/.test(call)),
      [`capture ${boxId}`, `removeArchive ${id}`, `capture ${boxId}`],
    )
  },
)

for (const end of ['completes', 'is killed'] as const)
  t.test(
    `a deletion while a machine is taken over keeps its files, when the coordinator ${end}`,
    async (t) => {
      const [region, newRegion]: [Region, Region] = ['us-west-2', 'eu-central-1']
      let target: FakeInfrastructure | undefined
      const harness = await createRestartableSnapshots(t, await sqliteForTest(t), {
        finalSnapshots: true,
        createProviders(source) {
          target = new FakeInfrastructure(source)
          target.onSameDisk = new Map([[region, source]])
          return createProviders(
            new Map([
              [region, source.provider],
              [newRegion, target.provider],
            ]),
          )
        },
      })
      const { db, boxes, owner, start, createRunningBox, list, waitForJobs, waitForState } = harness
      if (target === undefined) throw new Error('there are no providers')
      const { schedule } = await start()
      const boxId = await createRunningBox()
      const taken = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      const hanging = createHangingFault()
      target.after.takeOver = async () => {
        taken.resolve()
        await (end === 'completes' ? released.promise : hanging.fault(boxId))
      }
      await transaction(db, async (trx) => {
        const box = await lockBox(trx, boxId)
        if (box) await enqueueMove(trx, box, newRegion, { reason: 'moved', now: Date.now() })
      })
      schedule(boxId)
      await taken.promise
      await boxes.remove(owner, boxId)
      if (end === 'completes') released.resolve()
      else {
        delete target.after.takeOver
        await start()
      }
      await waitForState(boxId, 'terminated')
      await waitForJobs()
      t.match(await list(), [{ kind: 'final', status: 'available' }])
      t.same([...target.archives.values()], ['content'], 'the snapshot is in the region of the machine')
      t.equal(harness.infra.archives.size + harness.infra.machines.size + target.machines.size, 0)
    },
  )
