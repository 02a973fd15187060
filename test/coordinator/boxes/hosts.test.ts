// The hosts of the rows of boxes and snapshots: what a start gives to its host, and what its lists leave out.
import t from 'tap'
import {
  adoptBoxes,
  hasRowsWithoutHost,
  listDownHosts,
  listLocalBoxRegions,
  listProviderUses,
} from '../../../coordinator/boxes/lookups.ts'
import { findOldestFrozenBoxId } from '../../../coordinator/boxes/store/boxes.ts'
import { createLeases } from '../../../coordinator/jobs/leases.ts'
import { addMachine } from '../../support/add-machine.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createFakeReplica } from '../../support/replica.ts'
import { createTwoHosts } from '../../support/two-hosts.ts'
import { createTestBoxService } from '../../support/workspace.ts'

await onEachDatabase(t, async (t, newDb) => {
  await t.test('a start gives its host to the boxes and snapshots of earlier versions', async (t) => {
    const { db, owner, a, b, createRunningBox, waitForSnapshot } = await createTwoHosts(t, await newDb(t))
    await a.start()
    await b.start()
    const [earlier, other] = [await createRunningBox(a), await createRunningBox(b)]
    const machine = await addMachine(db, owner, 'machine')
    const snapshot = await a.snapshots.create(owner, { boxId: earlier, name: 'first' })
    await waitForSnapshot(snapshot.id)
    await db.updateTable('boxes').set({ host: null }).where('id', '=', earlier).execute()
    await db.updateTable('snapshots').set({ host: null }).execute()
    t.equal(await hasRowsWithoutHost(db), true)
    await adoptBoxes(db, 'hst_new')
    t.equal(await hasRowsWithoutHost(db), false)
    const rows = await db.selectFrom('boxes').select(['id', 'host']).execute()
    t.same(
      new Map(rows.map(({ id, host }) => [id, host])),
      new Map([
        [earlier, 'hst_new'],
        [other, b.host],
        [machine, null],
      ]),
    )
    t.same(await db.selectFrom('snapshots').select('host').execute(), [{ host: 'hst_new' }])
    t.same(await listDownHosts(db, 'hst_new'), [], 'its coordinator is alive')
    await b.stop()
    t.same(await listDownHosts(db, 'hst_new'), [{ host: b.host, boxes: 1, snapshots: 0 }])
    t.same(await listDownHosts(db, b.host), [{ host: 'hst_new', boxes: 1, snapshots: 1 }])
  })

  await t.test('the lists of a start and of the memory leave out other hosts', async (t) => {
    const { db, owner, a, b } = await createTwoHosts(t, await newDb(t))
    const [ofA, ofB] = [(await a.boxes.create(owner, {})).id, (await b.boxes.create(owner, {})).id]
    await db
      .updateTable('boxes')
      .set({ provider: 'local', observed_state: 'suspended', suspended_as: 'frozen' })
      .execute()
    for (const [{ host }, id] of [[a, ofA] as const, [b, ofB] as const]) {
      t.same(await listLocalBoxRegions(db, host), [{ id, region: 'us-west-2' }])
      t.same(await listProviderUses(db, host), [
        { region: 'us-west-2', provider: 'local', boxes: 1, snapshots: 0 },
      ])
      t.equal(await findOldestFrozenBoxId(db, host), id)
    }
  })

  await t.test('a box from a snapshot of another host takes no machine that waits here', async (t) => {
    const { db, owner, a, createRunningBox, waitForSnapshot } = await createTwoHosts(t, await newDb(t))
    await a.start()
    const snapshot = await a.snapshots.create(owner, { boxId: await createRunningBox(a), name: 'first' })
    await waitForSnapshot(snapshot.id)
    const takenOn: string[] = []
    const createOn = (host: string) =>
      createTestBoxService(db, {
        host,
        warmMachines: {
          async take() {
            takenOn.push(host)
            return null
          },
        },
      }).create(owner, { fromSnapshotId: snapshot.id })
    const created = [await createOn('hst_a'), await createOn('hst_b')]
    t.same(takenOn, ['hst_a'])
    const rows = await db.selectFrom('boxes').select(['id', 'host']).execute()
    for (const { id } of created) t.equal(rows.find((row) => row.id === id)?.host, a.host)
  })

  await t.test(
    'the jobs of another host are never due, those of enrolled machines are due for all',
    async (t) => {
      const { db, owner, a, b } = await createTwoHosts(t, await newDb(t))
      const { id } = await a.boxes.create(owner, {})
      const machine = await addMachine(db, owner, 'machine')
      await db.updateTable('jobs').set({ next_retry_at: null }).execute()
      const listDue = async (host: string) =>
        new Set(await createLeases(db, 'jobs', createFakeReplica('rep_test', host)).listDueIds(0))
      t.same(await listDue(a.host), new Set([id, machine]))
      t.same(await listDue(b.host), new Set([machine]))
    },
  )
})
