// The last use of API keys, and the expiry of machine keys that moves with it.
import t from 'tap'
import { dialectTraits } from '../../../../coordinator/db/dialects.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { createKeyUses } from '../../../../coordinator/identity/keys/key-uses.ts'
import { addApiKey, createKeyFinder, createKeyRow } from '../../../../coordinator/identity/keys/keys.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { createOwner, createTestClock, type TestClock } from '../../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60_000
const log = { error: (...args: unknown[]) => t.fail(`logged ${JSON.stringify(args)}`) }

async function setUp(db: Db, clock: TestClock) {
  const { workspaceId, userId } = await createOwner(db, clock)
  const uses = createKeyUses({ db, clock, log })
  const find = createKeyFinder({ db, clock, onUse: uses.record })
  const readRow = (id: string) =>
    db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const add = (hash: string, kind: 'api' | 'machine', expiresAt?: number) =>
    transaction(db, (trx) =>
      addApiKey(trx, { workspaceId, userId, hash, now: clock.now(), kind, ...(expiresAt && { expiresAt }) }),
    )
  return { uses, find, readRow, add }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('uses are written by the flush, only the last one of each key', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const { uses, find, readRow, add } = await setUp(db, clock)
    const [used, unused] = [await add('used', 'api'), await add('unused', 'api')]
    await find('used')
    clock.advance(1000)
    await find('used')
    t.equal((await readRow(used)).last_used_at, null, 'a request writes nothing')
    await uses.flush()
    t.equal((await readRow(used)).last_used_at, clock.now())
    t.equal((await readRow(unused)).last_used_at, null)
    clock.advance(1000)
    await find('unused')
    await uses.close()
    t.equal((await readRow(unused)).last_used_at, clock.now(), 'a stop writes the rest')
  })

  t.test('a machine key in use does not expire; 90 days without use end it', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const { uses, find, readRow, add } = await setUp(db, clock)
    const id = await add('machine', 'machine', clock.now() + 90 * DAY_MS)
    for (let month = 0; month < 12; month += 1) {
      clock.advance(30 * DAY_MS)
      const expiresAt = clock.now() + 90 * DAY_MS
      t.match(await find('machine'), { actor: { credential: { expiresAt } } })
      await uses.flush()
      t.equal((await readRow(id)).expires_at, expiresAt)
    }
    clock.advance(90 * DAY_MS - 1)
    const lastUse = clock.now()
    t.match(await find('machine'), { actor: {} })
    await uses.flush()
    clock.advance(90 * DAY_MS)
    t.match(await find('machine'), { rejected: 'expired', expiresAt: lastUse + 90 * DAY_MS })
    await uses.close()
    t.equal((await readRow(id)).last_used_at, lastUse, 'a rejected request is not a use')
  })

  t.test('a use moves no expiry of an api key', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const { uses, find, readRow, add } = await setUp(db, clock)
    const expiresAt = clock.now() + DAY_MS
    const id = await add('api', 'api', expiresAt)
    t.match(await find('api'), { actor: { credential: { expiresAt } } })
    await uses.close()
    t.equal((await readRow(id)).expires_at, expiresAt)
  })

  t.test('a use before a revocation or rotation changes nothing after it', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const { uses, find, readRow, add } = await setUp(db, clock)
    const expiresAt = clock.now() + 90 * DAY_MS
    const ids = [await add('revoked', 'machine', expiresAt), await add('rotated', 'machine', expiresAt)]
    clock.advance(1000)
    await find('revoked')
    await find('rotated')
    const change = (id: string | undefined, changes: object) =>
      db
        .updateTable('api_keys')
        .set(changes)
        .where('id', '=', id ?? '')
        .execute()
    await change(ids[0], { revoked_at: clock.now() })
    await change(ids[1], { hash: 'new', last_used_at: null })
    await uses.close()
    for (const id of ids) t.match(await readRow(id), { last_used_at: null, expires_at: expiresAt })
    t.match(await find('revoked'), { rejected: 'revoked' })
    t.same(await find('rotated'), { rejected: 'unknown' })
  })

  t.test('writes more uses than one statement holds, by the primary key', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const clock = createTestClock()
    const { uses, readRow } = await setUp(db, clock)
    const { workspace_id: workspaceId } = await db
      .selectFrom('api_keys')
      .selectAll()
      .executeTakeFirstOrThrow()
    const rows = Array.from({ length: 501 }, (_, i) =>
      createKeyRow({ workspaceId, userId: null, hash: `hash ${i}`, now: clock.now() }),
    )
    await db.insertInto('api_keys').values(rows).execute()
    const ids = rows.map(({ id }) => id)
    clock.advance(1)
    for (const row of rows) uses.record(row)
    await readPlans()
    await uses.close()
    for (const id of [ids.at(0), ids.at(-1)]) t.equal((await readRow(id ?? '')).last_used_at, clock.now())
    const plans = (await readPlans()).join('\n')
    t.notMatch(plans, /(SCAN|Seq Scan on) api_keys/)
  })

  t.test('a key that another transaction is changing does not delay the flush', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const { uses, find, readRow, add } = await setUp(db, clock)
    const [changing, free] = [await add('changing', 'api'), await add('free', 'api')]
    await find('changing')
    await find('free')
    const [isChanged, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const change = transaction(db, async (trx) => {
      await trx.updateTable('api_keys').set({ name: 'new' }).where('id', '=', changing).execute()
      isChanged.resolve()
      await mayCommit.promise
    })
    await isChanged.promise
    const flush = uses.flush()
    // SQLite runs one transaction at a time.
    if (dialectTraits(db).locksRows) await flush
    mayCommit.resolve()
    await Promise.all([change, flush])
    t.equal((await readRow(free)).last_used_at, clock.now())
    await uses.close()
  })
})
