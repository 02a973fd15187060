// A coordinator killed during any provider call of a snapshot: the next coordinator completes the request, and leaves nothing.
import t, { type Test } from 'tap'
import { createHangingFault } from '../../../support/fake-infrastructure.ts'
import {
  createRestartableSnapshots,
  type RestartableSnapshots,
} from '../../../support/restartable-snapshots.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

type Call = 'capture' | 'removeArchive' | 'create' | 'destroy'

type Scenario = {
  calls: readonly Call[]
  finalSnapshots?: boolean
  /** Prepares the request. The returned function sends the request. */
  prepare(harness: RestartableSnapshots): Promise<() => Promise<unknown>>
  /** Waits for the result. Returns the number of archives that may remain. */
  check(t: Test, harness: RestartableSnapshots): Promise<number>
}

const scenarios: Record<string, Scenario> = {
  'a snapshot': {
    calls: ['capture'],
    async prepare({ createRunningBox, getSnapshots, owner }) {
      const boxId = await createRunningBox()
      return () => getSnapshots().service.create(owner, { boxId, name: 'a' })
    },
    async check(t, { list }) {
      t.match(await list(), [{ name: 'a', status: 'available', error: null }])
      return 1
    },
  },
  'the deletion of a snapshot': {
    calls: ['removeArchive'],
    async prepare({ createRunningBox, getSnapshots, owner, waitForStatus }) {
      const boxId = await createRunningBox()
      const { id } = await getSnapshots().service.create(owner, { boxId, name: 'a' })
      await waitForStatus(id, 'available')
      return () => getSnapshots().service.remove(owner, id)
    },
    async check(t, { list, db }) {
      t.same(await list(), [])
      t.match(await db.selectFrom('operations').selectAll().execute(), [{ status: 'completed' }])
      return 0
    },
  },
  'a restore': {
    calls: ['create'],
    async prepare({ createRunningBox, getSnapshots, owner, waitForStatus }) {
      const boxId = await createRunningBox()
      const { id } = await getSnapshots().service.create(owner, { boxId, name: 'a' })
      await waitForStatus(id, 'available')
      return () => getSnapshots().service.restore(owner, id, { name: 'plum' })
    },
    async check(t, { boxes, owner, infra, waitForState }) {
      const found = (await boxes.list(owner)).filter(({ hostname }) => hostname === 'plum')
      t.equal(found.length, 1)
      await waitForState(found[0]?.id ?? '', 'running')
      t.equal(infra.machines.get(found[0]?.id ?? '')?.files, 'content')
      return 1
    },
  },
  'a fork': {
    calls: ['capture', 'create', 'removeArchive'],
    async prepare({ createRunningBox, getSnapshots, owner }) {
      const boxId = await createRunningBox()
      return () => getSnapshots().service.fork(owner, boxId, { name: 'plum' })
    },
    async check(t, { boxes, owner, infra, list, waitFor, waitForState }) {
      const found = (await boxes.list(owner)).filter(({ hostname }) => hostname === 'plum')
      t.equal(found.length, 1)
      await waitForState(found[0]?.id ?? '', 'running')
      t.equal(infra.machines.get(found[0]?.id ?? '')?.files, 'content')
      await waitFor('the copy to be deleted', async () => (await list()).length === 0)
      return 0
    },
  },
  'a delete with a final snapshot': {
    calls: ['capture', 'destroy'],
    finalSnapshots: true,
    async prepare({ createRunningBox, boxes, owner }) {
      const boxId = await createRunningBox()
      return () => boxes.remove(owner, boxId)
    },
    async check(t, { boxes, owner, infra, list, waitForState }) {
      const [box] = await boxes.list(owner)
      await waitForState(box?.id ?? '', 'terminated')
      t.equal(infra.machines.size, 0)
      t.match(await list(), [{ kind: 'final', status: 'available', boxId: box?.id }])
      t.same([...infra.archives.values()], ['content'])
      return 1
    },
  },
}

for (const [name, { calls, finalSnapshots = false, prepare, check }] of Object.entries(scenarios)) {
  for (const call of calls) {
    for (const moment of ['before', 'after'] as const) {
      t.test(`completes ${name} after a kill ${moment} the provider's ${call}`, async (t) => {
        const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots })
        const { infra, start, waitFor, waitForJobs } = harness
        await start()
        const request = await prepare(harness)
        const { fault, triggered } = createHangingFault()
        let isTriggered = false
        void triggered.then(() => {
          isTriggered = true
        })
        infra[moment][call] = fault
        await request()
        // The timers of the coordinator do not keep the process running.
        await waitFor(`the provider's ${call}`, () => isTriggered)
        delete infra[moment][call]
        await start()
        await waitForJobs()
        const archives = await check(t, harness)
        await waitForJobs()
        t.equal(infra.archives.size, archives)
      })
    }
  }
}

t.test('runs the requests that were accepted before the coordinator was killed', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, owner, infra, start, createRunningBox, getSnapshots, waitForStatus, waitForJobs, list } =
    harness
  await start()
  const boxId = await createRunningBox()
  const { fault } = createHangingFault()
  infra.before.capture = fault
  const { service } = getSnapshots()
  const [first, second] = [
    await service.create(owner, { boxId, name: 'first' }),
    await service.create(owner, { boxId, name: 'second' }),
  ]
  const { operation } = await service.remove(owner, second.id)
  delete infra.before.capture
  await start()
  await waitForStatus(first.id, 'available')
  await waitForJobs()
  t.equal((await list()).length, 1)
  t.equal(infra.archives.size, 1)
  const row = await db.selectFrom('operations').selectAll().where('id', '=', operation.id).executeTakeFirst()
  t.match(row, { status: 'completed' })
})
