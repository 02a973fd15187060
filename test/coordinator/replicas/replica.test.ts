// The lease of a coordinator: what it owns is free when it has stopped, and it stops by itself before that.
import t from 'tap'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { isElsewhere, isUnavailable, listAliveHosts } from '../../../coordinator/replicas/hosts.ts'
import { listStatuses } from '../../../coordinator/replicas/list-statuses.ts'
import { hasOtherOwner } from '../../../coordinator/replicas/owners.ts'
import {
  type Replica,
  registerOnlyReplica,
  registerSharedReplica,
} from '../../../coordinator/replicas/replica.ts'
import { VERSION } from '../../../shared/version.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addReplica, TEST_HOST } from '../../support/replica.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SILENT = { warn() {}, error() {} }
const URL = 'http://127.0.0.1:1'
const HOUR_MS = 60 * 60_000
/** Without the database. */
const OPTIONS = { host: TEST_HOST, log: SILENT, url: URL, name: 'test', settings: {} }

const isOwned = (db: Db, { id }: Pick<Replica, 'id'>) =>
  transaction(db, (trx) => hasOtherOwner(trx, id, 'own'))

await onEachDatabase(t, async (t, newDb) => {
  await t.test('the only coordinator is alive until the next one starts', async (t) => {
    const db = await newDb(t)
    const first = await registerOnlyReplica(db, TEST_HOST)
    t.equal(await isOwned(db, first), true)
    t.equal(await transaction(db, (trx) => hasOtherOwner(trx, first.id, first.id)), false, 'itself')
    t.equal(await transaction(db, (trx) => hasOtherOwner(trx, null, 'own')), false)
    const second = await registerOnlyReplica(db, TEST_HOST)
    t.equal(await isOwned(db, first), false)
    t.equal(await isOwned(db, second), true)
    await second.close()
    t.equal(await isOwned(db, second), false)
  })

  await t.test('one of several is alive while it renews its lease', async (t) => {
    const db = await newDb(t)
    const first = await registerSharedReplica({
      ...OPTIONS,
      db,
      renewEveryMs: 10,
    })
    const second = await registerSharedReplica({
      ...OPTIONS,
      db,
      renewEveryMs: 10,
    })
    t.same([first.isLeaseValid, second.isLeaseValid], [true, true])
    t.same([await isOwned(db, first), await isOwned(db, second)], [true, true])
    const stopped: string[] = []
    second.events.on('stopped', (id) => stopped.push(id))
    // As after kill -9 and the end of its lease.
    await addReplica(db, 'killed', HOUR_MS)
    await addReplica(db, 'killed', -1)
    t.equal(await isOwned(db, { id: 'killed' }), false)
    await first.close()
    await waitUntil('the other coordinator finds it', () => stopped.includes(first.id))
    t.equal(first.isLeaseValid, false)
    await second.close()
    t.same(await db.selectFrom('replicas').select('id').execute(), [{ id: 'killed' }])
  })

  await t.test(
    'the others read the builds at once, and the number of agents with the next renewal',
    async (t) => {
      const db = await newDb(t)
      const options = {
        ...OPTIONS,
        db,
        renewEveryMs: 10,
      }
      const first = await registerSharedReplica(options)
      const second = await registerSharedReplica(options)
      const read = async () => (await second.fleet?.read())?.find(({ id }) => id === first.id)
      t.match(await read(), { version: VERSION, host: TEST_HOST, agentBuilds: {}, tunnels: null })
      await Promise.all([first.fleet?.offerBuild('linux-x64', 'a'), first.fleet?.offerBuild('managed', 'b')])
      t.match(await read(), { agentBuilds: { 'linux-x64': 'a', managed: 'b' }, tunnels: null })
      let tunnels = 3
      first.fleet?.countTunnels(() => tunnels)
      await waitUntil('the agents are counted', async () => (await read())?.tunnels === 3)
      tunnels = 0
      await waitUntil('none is connected', async () => (await read())?.tunnels === 0)
      t.match((await read())?.agentBuilds, { 'linux-x64': 'a', managed: 'b' }, 'a renewal keeps them')
      t.match(await listStatuses(db), [
        { name: 'test', isAlive: true, leaseAgeMs: Number },
        { name: 'test', isAlive: true },
      ])
      let renewals = 0
      second.events.on('membersRead', () => {
        renewals += 1
      })
      await first.close()
      await waitUntil('it is not a member any more', () => second.fleet?.members.length === 1)
      await waitUntil('its renewals are emitted', () => renewals > 0)
      await second.close()
      t.equal((await registerOnlyReplica(db, TEST_HOST)).fleet, null)
      t.same(await listStatuses(db), [])
    },
  )

  await t.test('the others read at once that one accepts no agents any more', async (t) => {
    const db = await newDb(t)
    const options = { ...OPTIONS, db }
    const replica = await registerSharedReplica({ ...options, renewEveryMs: HOUR_MS })
    const read = async () => (await replica.fleet?.read())?.[0]?.tunnels
    // As after a renewal.
    await db.updateTable('replicas').set({ tunnels: 3 }).execute()
    t.equal(await read(), 3)
    await replica.fleet?.stopAccepting()
    t.equal(await read(), null)
    await replica.close()
  })

  await t.test('a killed one is found when its lease ends, before the next renewal', async (t) => {
    const db = await newDb(t)
    await addReplica(db, 'killed', 300)
    const options = { ...OPTIONS, db }
    const replica = await registerSharedReplica({ ...options, renewEveryMs: HOUR_MS })
    const stopped: string[] = []
    replica.events.on('stopped', (id) => stopped.push(id))
    await waitUntil('the end is found', () => stopped.includes('killed'))
    await replica.close()
  })

  await t.test('a slow read of the others does not delay the renewals', async (t) => {
    const db = await newDb(t)
    const options = { ...OPTIONS, db }
    const replica = await registerSharedReplica({ ...options, renewEveryMs: 10 })
    const { fleet } = replica
    if (fleet === null) throw new Error('it is not shared')
    const mayEnd = Promise.withResolvers<void>()
    let isReading = false
    const { read } = fleet
    fleet.read = async () => {
      isReading = true
      await mayEnd.promise
      return read()
    }
    await waitUntil('the others are read', () => isReading)
    fleet.countTunnels(() => 3)
    await waitUntil('the lease is renewed', async () => {
      const row = await db.selectFrom('replicas').select('tunnels').executeTakeFirst()
      return row?.tunnels === 3
    })
    mayEnd.resolve()
    await replica.close()
  })

  await t.test('a host is available while one of its coordinators is alive', async (t) => {
    const db = await newDb(t)
    const isDown = (host: string | null) => isUnavailable(db, { host }, TEST_HOST)
    t.same([await isDown(TEST_HOST), await isDown(null), await isDown('hst_other')], [false, false, true])
    await addReplica(db, 'first', HOUR_MS, 'hst_other')
    await addReplica(db, 'second', HOUR_MS, 'hst_other')
    t.equal(await isDown('hst_other'), false)
    t.same(await listAliveHosts(db), new Set(['hst_other']))
    await addReplica(db, 'first', -1, 'hst_other')
    t.equal(await isDown('hst_other'), false)
    await addReplica(db, 'second', -1, 'hst_other')
    t.equal(await isDown('hst_other'), true)
    t.same(await listAliveHosts(db), new Set())
    t.same(
      [isElsewhere({ host: 'hst_other' }, TEST_HOST), isElsewhere({ host: null }, TEST_HOST)],
      [true, false],
    )
  })

  await t.test('a coordinator that cannot renew its lease ends it, and gets it back', async (t) => {
    const db = await newDb(t)
    const lease = { leaseMs: HOUR_MS, lostAfterMs: 50, renewEveryMs: 10 }
    const replica = await registerSharedReplica({
      ...OPTIONS,
      db,
      ...lease,
    })
    const seen: string[] = []
    replica.events.on('lost', () => seen.push(`lost ${replica.isLeaseValid}`))
    replica.events.on('regained', () => seen.push(`regained ${replica.isLeaseValid}`))
    await db.schema.alterTable('replicas').renameTo('unavailable').execute()
    await waitUntil('the lease is lost', () => seen.length > 0)
    t.same(seen, ['lost false'])
    await db.schema.alterTable('unavailable').renameTo('replicas').execute()
    await waitUntil('the lease is valid again', () => seen.length > 1)
    t.same(seen, ['lost false', 'regained true'])
    await replica.close()
  })
})
