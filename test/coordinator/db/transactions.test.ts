// Transactions: all or nothing, callbacks only after the commit, no waiting for ever.
import t from 'tap'
import { locked, transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'

const workspace = (id: string) => ({ id, name: id, zero_data_retention: 0 as const, created_at: 2 ** 41 })

onEachDatabase(t, async (t, newDb) => {
  t.test('what threw left nothing behind, and its callbacks are not run', async (t) => {
    const db = await newDb(t)
    const ran: string[] = []
    await t.rejects(
      transaction(db, async (trx, onCommit) => {
        onCommit(() => ran.push('lost'))
        await trx.insertInto('workspaces').values(workspace('a')).execute()
        throw new Error('no')
      }),
      { message: 'no' },
    )
    t.same(await db.selectFrom('workspaces').selectAll().execute(), [])
    t.same(ran, [])
  })

  t.test('callbacks run after the commit, in order, also those of a transaction inside', async (t) => {
    const db = await newDb(t)
    const ran: string[] = []
    await transaction(db, async (trx, onCommit) => {
      onCommit(() => ran.push('outer'))
      await transaction(trx, async (inner, onCommit) => {
        await inner.insertInto('workspaces').values(workspace('a')).execute()
        onCommit(() => ran.push('inner'))
      })
      t.same(ran, [])
    })
    t.same(ran, ['outer', 'inner'])
    t.match(await db.selectFrom('workspaces').selectAll().execute(), [workspace('a')])
  })

  t.test('many at once do not lose an update', async (t) => {
    const db = await newDb(t)
    await db
      .insertInto('workspaces')
      .values({ ...workspace('a'), created_at: 0 })
      .execute()
    const addOne = () =>
      transaction(db, async (trx) => {
        const { created_at } = await locked(
          trx,
          trx.selectFrom('workspaces').selectAll(),
        ).executeTakeFirstOrThrow()
        await trx
          .updateTable('workspaces')
          .set({ created_at: created_at + 1 })
          .execute()
      })
    await Promise.all(Array.from({ length: 20 }, addOne))
    t.equal((await db.selectFrom('workspaces').select('created_at').executeTakeFirst())?.created_at, 20)
  })

  t.test('a query outside waits its turn while a transaction is open', async (t) => {
    const db = await newDb(t)
    const opened = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const writing = transaction(db, async (trx) => {
      await trx.insertInto('workspaces').values(workspace('a')).execute()
      opened.resolve()
      await goOn.promise
      await trx.insertInto('workspaces').values(workspace('b')).execute()
    })
    await opened.promise
    const reading = db.selectFrom('workspaces').select('id').execute()
    goOn.resolve()
    await writing
    // Before or after the transaction, by the database, but never the middle of it.
    t.not((await reading).length, 1)
  })
})
