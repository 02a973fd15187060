// The pool of machines that wait for a box: no machine gets two boxes, and none is left behind.
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { unlessAborted } from '../../../coordinator/base/unless-aborted.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Provider } from '../../../coordinator/providers/provider.ts'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { createWarmPool } from '../../../coordinator/warm-machines/pool.ts'
import { listWarmMachines } from '../../../coordinator/warm-machines/store.ts'
import { DEFAULT_REGION } from '../../../shared/tiers.ts'
import { onEachDatabase } from '../../support/db.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { createFakeReplica, TEST_HOST } from '../../support/replica.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

const [REGION, OTHER] = [DEFAULT_REGION, 'us-east-1'] as const
const machine = { region: REGION, image: null }

await onEachDatabase(t, async (t, newDb) => {
  async function setUp(
    t: Test,
    { size = 1, db, host = TEST_HOST }: { size?: number; db?: Db; host?: string } = {},
  ) {
    const infra = new FakeInfrastructure()
    const { provider } = infra
    const state = {
      isScarce: false as boolean | null,
      failures: 0,
      created: [] as string[],
      held: Promise.resolve(),
    }
    const warm: NonNullable<Provider['warm']> = {
      problem: null,
      async create(boxId, _url, signal) {
        state.created.push(boxId)
        await provider.create({
          boxId,
          hostname: 'none',
          tier: 'nano',
          coordinatorUrl: '',
          image: null,
        })
        await unlessAborted(state.held, signal)
        if (state.failures-- > 0) throw new Error('the machine does not start')
      },
    }
    const regional = { ...provider, warm }
    const database = db ?? (await newDb(t))
    const pool = createWarmPool({
      db: database,
      log: silentLog,
      replica: createFakeReplica('rep_test', host),
      providers: createProviders(new Map([REGION, OTHER].map((region) => [region, regional])), [
        REGION,
        OTHER,
      ]),
      memory: {
        async isUnderMemoryPressure() {
          if (state.isScarce === null) throw new Error('not readable')
          return state.isScarce
        },
      },
      coordinatorUrl: 'http://127.0.0.1:9',
      quietMs: 5,
    })
    t.teardown(pool.close)
    await pool.open(size)
    const countReady = async (region = REGION as string) => (await pool.countReady()).get(region) ?? 0
    const waitForReady = (count: number, region?: string) =>
      waitUntil(`${count} machines wait`, async () => (await countReady(region)) === count)
    const take = (from: { region: typeof REGION | typeof OTHER; image: string | null } = machine) =>
      transaction(database, (trx) => pool.take(trx, from))
    return { infra, pool, state, db: database, take, countReady, waitForReady }
  }

  await t.test('a box takes a machine, and the pool is filled again', async (t) => {
    const { state, take, waitForReady } = await setUp(t)
    await waitForReady(1)
    const id = await take()
    t.equal(id, state.created[0])
    t.equal(await take(), null, 'the next box of a burst gets none')
    await waitForReady(1)
    t.equal(state.created.length, 2)
    t.not(await take(), id)
  })

  await t.test('boxes at the same time get different machines', async (t) => {
    const { take, waitForReady } = await setUp(t, { size: 3 })
    await waitForReady(3)
    const taken = (await Promise.all(Array.from({ length: 8 }, () => take()))).filter((id) => id !== null)
    t.ok(taken.length > 0)
    t.equal(new Set(taken).size, taken.length)
  })

  await t.test('a transaction that is rolled back gives the machine back', async (t) => {
    const { db, pool, countReady, waitForReady } = await setUp(t)
    await waitForReady(1)
    const refused = transaction(db, async (trx) => {
      t.type(await pool.take(trx, machine), 'string')
      throw new Error('refused')
    })
    await t.rejects(refused, { message: 'refused' })
    t.equal(await countReady(), 1)
  })

  await t.test('a box with an image gets none', async (t) => {
    const { take, countReady, waitForReady } = await setUp(t)
    await waitForReady(1)
    t.equal(await take({ ...machine, image: 'debian:12' }), null)
    t.equal(await countReady(), 1)
  })

  await t.test('another region gets machines when a box is created there', async (t) => {
    const { take, countReady, waitForReady } = await setUp(t)
    await waitForReady(1)
    t.equal(await countReady(OTHER), 0)
    t.equal(await take({ region: OTHER, image: null }), null)
    await waitForReady(1, OTHER)
    t.equal(await countReady(), 1)
  })

  await t.test('no machine is started while boxes are created', async (t) => {
    const { state, take, waitForReady } = await setUp(t, { size: 2 })
    await waitForReady(2)
    for (let i = 0; i < 20; i++) await take()
    t.equal(state.created.length, 2)
    await waitForReady(2)
    t.equal(state.created.length, 4)
  })

  await t.test('a machine that does not start is removed, and another one is started', async (t) => {
    const { state, infra, pool, waitForReady } = await setUp(t)
    state.failures = 2
    // The schedules call it every minute.
    await waitUntil('a machine waits', async () => {
      await pool.adjust()
      return (await pool.countReady()).get(REGION) === 1
    })
    await waitForReady(1)
    t.same([...infra.machines.keys()], state.created.slice(-1))
  })

  await t.test('scarce memory removes the machines, until it is not scarce any more', async (t) => {
    const { state, infra, pool, take, countReady, waitForReady } = await setUp(t, { size: 2 })
    await waitForReady(2)
    state.isScarce = true
    await pool.adjust()
    t.equal(await countReady(), 0)
    t.equal(infra.machines.size, 0)
    t.equal(await take(), null)
    await pool.adjust()
    await sleep(20)
    t.equal(state.created.length, 2)
    state.isScarce = false
    await pool.adjust()
    await waitForReady(2)
  })

  await t.test('a memory usage that cannot be read changes nothing', async (t) => {
    const { state, pool, countReady, waitForReady } = await setUp(t)
    await waitForReady(1)
    state.isScarce = null
    await pool.adjust()
    t.equal(await countReady(), 1)
    t.equal(state.created.length, 1)
  })

  await t.test('a killed coordinator leaves machines that the next one removes', async (t) => {
    const first = await setUp(t)
    await first.waitForReady(1)
    const [left = ''] = first.state.created
    const second = await setUp(t, { db: first.db, size: 0 })
    // A machine of the first coordinator must not be taken: its agent may be another build.
    t.equal(await second.take(), null)
    second.infra.machines.set(left, { state: 'running', token: '', files: '' })
    await second.pool.adjust()
    await waitUntil('the machine is removed', () => !second.infra.machines.has(left))
    t.same(await listWarmMachines(first.db, TEST_HOST), [])
  })

  await t.test(
    'a host has its own machines: a start, a box and a stop leave those of another host',
    async (t) => {
      const first = await setUp(t)
      await first.waitForReady(1)
      const second = await setUp(t, { db: first.db, host: 'hst_other' })
      t.equal(await second.take(), null, 'none of its own is ready')
      await second.waitForReady(1)
      t.equal(await second.take(), second.state.created[0])
      await second.pool.close()
      t.equal(await first.countReady(), 1)
      t.same(second.infra.countCalls('destroy', first.state.created[0]), 0)
      t.equal(await first.take(), first.state.created[0])
    },
  )

  await t.test('a stop removes the machines, also the one that is being started', async (t) => {
    const { state, infra, pool, db } = await setUp(t, { size: 2 })
    const { promise, resolve } = Promise.withResolvers<void>()
    state.held = promise
    await waitUntil('a machine is being started', () => state.created.length === 1)
    const closed = pool.close()
    resolve()
    await closed
    t.equal(state.created.length, 1)
    t.equal(infra.machines.size, 0)
    t.same(await listWarmMachines(db, TEST_HOST), [])
    await pool.adjust()
    await sleep(20)
    t.equal(state.created.length, 1)
  })

  await t.test('a stop does not wait for a machine that is being started', async (t) => {
    const { state, infra, pool, db } = await setUp(t)
    state.held = new Promise(() => undefined)
    await waitUntil('a machine is being started', () => state.created.length === 1)
    await pool.close()
    t.equal(infra.machines.size, 0)
    t.same(await listWarmMachines(db, TEST_HOST), [])
  })

  await t.test('a machine that cannot be removed stays known', async (t) => {
    const { state, infra, pool, db } = await setUp(t)
    await waitUntil('a machine waits', async () => (await pool.countReady()).get(REGION) === 1)
    infra.before.destroy = () => {
      throw new Error('the engine is down')
    }
    await pool.close()
    t.same(
      (await listWarmMachines(db, TEST_HOST)).map(({ id }) => id),
      state.created,
    )
  })

  await t.test('the other machines are removed when one cannot be', async (t) => {
    const { state, infra, pool, db, waitForReady } = await setUp(t, { size: 3 })
    await waitForReady(3)
    const [failing = ''] = [...state.created].sort()
    infra.before.destroy = (boxId) => {
      if (boxId === failing) throw new Error('the engine is down')
    }
    await pool.close()
    t.same([...infra.machines.keys()], [failing])
    t.same(
      (await listWarmMachines(db, TEST_HOST)).map(({ id }) => id),
      [failing],
    )
  })

  await t.test('with the size 0, nothing is started', async (t) => {
    const { state, pool, take } = await setUp(t, { size: 0 })
    t.equal(await take(), null)
    await pool.adjust()
    await sleep(20)
    t.same(state.created, [])
  })
})
