// Queries that every request runs: on SQLite without the queue of the connection while it is free.
import t from 'tap'
import type { StoreObserver } from '../../../coordinator/db/observed-driver.ts'
import { type Db, openDatabase } from '../../../coordinator/db/open.ts'
import { prepareQuery, prepareTrxQuery, prepareWrite } from '../../../coordinator/db/prepared-queries.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { addApiKey, createKeyFinder } from '../../../coordinator/identity/keys/keys.ts'
import { revokeKeysOfUser } from '../../../coordinator/identity/store/keys.ts'
import { systemClock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'
import { databaseFile, sqliteForTest } from '../../support/sqlite.ts'
import { createOwner } from '../../support/workspace.ts'

const HASH = 'hash of a key'

async function createKey(db: Db): Promise<string> {
  const { workspaceId, userId } = await createOwner(db)
  if (userId === null) throw new Error('the owner is a user')
  await transaction(db, (trx) => addApiKey(trx, { workspaceId, userId, hash: HASH, now: 0 }))
  return userId
}

const prepareName = (db: Db) =>
  prepareQuery<{ name: string }, [id: string]>(db, (database) =>
    database.selectFrom('workspaces').select('name').where('id', '=', ''),
  )

const insertPrepared = prepareWrite((trx) =>
  trx.insertInto('workspaces').values({ id: '', name: '', zero_data_retention: 0, created_at: 0 }),
)
const findPrepared = prepareTrxQuery<{ name: string }>((trx) =>
  trx.selectFrom('workspaces').select('name').where('id', '=', ''),
)

onEachDatabase(t, async (t, newDb) => {
  await t.test('a revoked key is refused from the commit on, also while a transaction is open', async (t) => {
    const db = await newDb(t)
    const userId = await createKey(db)
    const find = createKeyFinder({ db, clock: systemClock })
    t.match(await find(HASH), { actor: { userId } })
    const release = Promise.withResolvers<void>()
    const revoked = Promise.withResolvers<void>()
    const revocation = transaction(db, async (trx) => {
      await revokeKeysOfUser(trx, userId, 1)
      revoked.resolve()
      await release.promise
    })
    await revoked.promise
    const duringTransaction = find(HASH)
    release.resolve()
    await revocation
    // A transaction that changes nothing is open.
    const other = transaction(db, async (trx) => {
      await trx.selectFrom('workspaces').select('id').execute()
    })
    t.match(await find(HASH), { rejected: 'revoked' })
    await Promise.all([other, duringTransaction])
    t.match(await find(HASH), { rejected: 'revoked' })
  })

  await t.test('a revocation that was rolled back has no effect', async (t) => {
    const db = await newDb(t)
    const userId = await createKey(db)
    const find = createKeyFinder({ db, clock: systemClock })
    const updated = Promise.withResolvers<void>()
    const revocation = transaction(db, async (trx) => {
      await revokeKeysOfUser(trx, userId, 1)
      updated.resolve()
      throw new Error('simulated failure')
    })
    await updated.promise
    const found = find(HASH)
    await t.rejects(revocation, { message: 'simulated failure' })
    t.match(await found, { actor: { userId } })
  })

  await t.test('prepared and other queries of a transaction share its outcome', async (t) => {
    const db = await newDb(t)
    const find = prepareName(db)
    const insert = (fails: boolean) =>
      transaction(db, async (trx) => {
        t.equal(await insertPrepared(trx, ['a', 'A', 0, 0]), 1)
        await trx.updateTable('workspaces').set({ name: 'B' }).execute()
        t.same(await findPrepared(trx, ['a']), [{ name: 'B' }])
        if (fails) throw new Error('simulated failure')
      })
    await t.rejects(insert(true), { message: 'simulated failure' })
    t.same(await find('a'), [])
    await insert(false)
    t.same(await find('a'), [{ name: 'B' }])
    await t.rejects(
      transaction(db, (trx) => insertPrepared(trx, ['a', 'A', 0, 0])),
      { message: /unique/i },
    )
    t.same(await find('a'), [{ name: 'B' }])
  })

  for (const outcome of ['committed', 'rolled back'])
    await t.test(`a prepared query of a transaction that was ${outcome} is rejected`, async (t) => {
      const db = await newDb(t)
      const ended = Promise.withResolvers<void>()
      const queries: Promise<unknown>[] = []
      const transacted = transaction(db, async (trx) => {
        queries.push(
          ended.promise.then(() => insertPrepared(trx, ['a', 'A', 0, 0])),
          ended.promise.then(() => findPrepared(trx, ['a'])),
        )
        if (outcome === 'rolled back') throw new Error('simulated failure')
      })
      await transacted.catch(() => undefined)
      // Another transaction must not get the query.
      await transaction(db, async () => {
        ended.resolve()
        for (const query of queries) await t.rejects(query, { message: `Transaction is already ${outcome}` })
      })
      t.same(await prepareName(db)('a'), [])
    })
})

const insertWorkspace = (db: Db) =>
  db.insertInto('workspaces').values({ id: 'a', name: 'A', zero_data_retention: 0, created_at: 0 }).execute()

t.test('on SQLite', async (t) => {
  await t.test('a query has run when its call returns, while the connection is free', async (t) => {
    const queries: string[] = []
    const observer: StoreObserver = {
      onQuery: (operation) => void queries.push(operation),
      onAcquire: () => undefined,
      onTransaction: () => undefined,
    }
    const db = await openDatabase({ kind: 'sqlite', file: databaseFile(t), observer })
    t.teardown(() => db.destroy())
    const find = prepareName(db)
    queries.length = 0
    const found = find('a')
    t.same(queries, ['select'])
    t.same(await found, [])
    await transaction(db, async (trx) => {
      const inserted = insertPrepared(trx, ['a', 'A', 0, 0])
      t.same(queries, ['select', 'insert'], 'also inside a transaction')
      t.equal(await inserted, 1)
    })
    t.same(await find('a'), [{ name: 'A' }])
  })

  await t.test('a query waits for the open transaction, and reads what it has written', async (t) => {
    const db = await sqliteForTest(t)
    const find = prepareName(db)
    const order: string[] = []
    const [inserted, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const transacted = transaction(db, async (trx, onCommit) => {
      await insertWorkspace(trx)
      onCommit(() => void order.push('committed'))
      inserted.resolve()
      await released.promise
    })
    await inserted.promise
    const found = find('a').finally(() => order.push('found'))
    released.resolve()
    t.same(await found, [{ name: 'A' }])
    await transacted
    t.same(order, ['committed', 'found'])
  })

  await t.test('a query inside a transaction is rejected instead of deadlocking', async (t) => {
    const db = await sqliteForTest(t)
    const find = prepareName(db)
    await t.rejects(
      transaction(db, () => find('a')),
      { message: /must go through the transaction/ },
    )
    t.same(await find('a'), [], 'the next query works')
  })
})
