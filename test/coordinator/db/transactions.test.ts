// Transactions: rollback, onCommit callbacks and isolation.
import t from 'tap'
import { forUpdate, transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'

const workspace = (id: string) => ({ id, name: id, zero_data_retention: 0 as const, created_at: 2 ** 41 })

onEachDatabase(t, async (t, newDb) => {
  t.test('an error rolls the transaction back and skips its callbacks', async (t) => {
    const db = await newDb(t)
    const calls: string[] = []
    await t.rejects(
      transaction(db, async (trx, onCommit) => {
        onCommit(() => calls.push('never'))
        await trx.insertInto('workspaces').values(workspace('a')).execute()
        throw new Error('simulated failure')
      }),
      { message: 'simulated failure' },
    )
    t.same(await db.selectFrom('workspaces').selectAll().execute(), [])
    t.same(calls, [])
  })

  t.test(
    'callbacks run in order after the outermost commit, including those of a nested transaction',
    async (t) => {
      const db = await newDb(t)
      const calls: string[] = []
      await transaction(db, async (trx, onCommit) => {
        onCommit(() => calls.push('outer'))
        await transaction(trx, async (inner, onCommit) => {
          await inner.insertInto('workspaces').values(workspace('a')).execute()
          onCommit(() => calls.push('inner'))
        })
        t.same(calls, [])
      })
      t.same(calls, ['outer', 'inner'])
      t.match(await db.selectFrom('workspaces').selectAll().execute(), [workspace('a')])
    },
  )

  t.test('concurrent transactions do not lose an update', async (t) => {
    const db = await newDb(t)
    await db
      .insertInto('workspaces')
      .values({ ...workspace('a'), created_at: 0 })
      .execute()
    const increment = () =>
      transaction(db, async (trx) => {
        const { created_at } = await forUpdate(
          trx,
          trx.selectFrom('workspaces').selectAll(),
        ).executeTakeFirstOrThrow()
        await trx
          .updateTable('workspaces')
          .set({ created_at: created_at + 1 })
          .execute()
      })
    await Promise.all(Array.from({ length: 20 }, increment))
    t.equal((await db.selectFrom('workspaces').select('created_at').executeTakeFirst())?.created_at, 20)
  })

  t.test('a query outside an open transaction does not see its uncommitted rows', async (t) => {
    const db = await newDb(t)
    const opened = Promise.withResolvers<void>()
    const proceed = Promise.withResolvers<void>()
    const writing = transaction(db, async (trx) => {
      await trx.insertInto('workspaces').values(workspace('a')).execute()
      opened.resolve()
      await proceed.promise
      await trx.insertInto('workspaces').values(workspace('b')).execute()
    })
    await opened.promise
    const reading = db.selectFrom('workspaces').select('id').execute()
    proceed.resolve()
    await writing
    // The read runs before or after the transaction, depending on the database, but never sees half of it.
    t.not((await reading).length, 1)
  })
})
