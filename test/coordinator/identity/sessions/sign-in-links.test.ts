// The links that sign in the owner, at two coordinators of one database.
import t from 'tap'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { SignInLinks } from '../../../../coordinator/identity/sessions/sign-in-links.ts'
import { openPair, startSharedPostgres } from '../../../support/shared-databases.ts'
import { createTestClock } from '../../../support/workspace.ts'

const postgres = await startSharedPostgres(t)

t.test('a link of one coordinator is valid at the other, once', { skip: postgres.skip }, async (t) => {
  const [first, second] = await openPair(t, await postgres.newDatabase())
  const links = new SignInLinks(createTestClock())
  const created = await Promise.all([...Array(8)].map((_, n) => links.create(n % 2 === 0 ? first : second)))
  for (const { secret } of created) {
    t.ok(await links.isValid(second, secret))
    const redeemed = await Promise.all(
      [first, second].map((db) => transaction(db, (trx) => links.redeem(trx, secret))),
    )
    t.same(redeemed.sort(), [false, true])
  }
  t.notOk(await links.isValid(first, created[0]?.secret ?? ''))
  const { secret } = await links.create(first)
  await links.voidAll(second)
  t.notOk(await transaction(first, (trx) => links.redeem(trx, secret)))
})
