// Who gets free credit: each person once, by a confirmed email address, whatever workspaces they create and delete.
import t, { type Test } from 'tap'
import { hashEmail } from '../../../coordinator/billing/free-credit.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { newId } from '../../../shared/ids.ts'
import { normalizeEmail } from '../../../shared/normalize-email.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances, TEST_CREDIT_MICROS } from '../../support/finances.ts'
import { createOwner, createTestClock } from '../../support/workspace.ts'

t.test('addresses of the same mailbox', async (t) => {
  for (const [email, normalized] of [
    ['eve@example.com', 'eve@example.com'],
    ['Eve@Example.COM', 'eve@example.com'],
    ['eve+1@example.com', 'eve@example.com'],
    ['eve+a+b@example.com', 'eve@example.com'],
    ['+a@example.com', '@example.com'],
    ['"a@b+c"@example.com', '"a@b@example.com'],
    ['eve.adams@example.com', 'eve.adams@example.com'],
  ] as const)
    t.equal(normalizeEmail(email), normalized)
  t.not(hashEmail('eve@example.com'), hashEmail('adam@example.com'))
})

async function setUp(db: Db) {
  const clock = createTestClock()
  const operator = await createOwner(db, clock)
  const finances = createTestFinances(db, clock)
  const readBalance = async (id: string) =>
    (await transaction(db, (trx) => finances.load(trx, id))).balanceMicros
  async function addWorkspace(): Promise<string> {
    const id = newId('workspace')
    clock.advance(1)
    const row = { id, name: id, zero_data_retention: 0 as const, created_at: clock.now() }
    await db.insertInto('workspaces').values(row).execute()
    return id
  }
  async function addOwner(workspaceId: string, email: string | null, isJoined = true): Promise<string> {
    const id = newId('user')
    const now = clock.now()
    const row = { id, workspace_id: workspaceId, email, name: 'Eve', role: 'owner' as const, created_at: now }
    await db
      .insertInto('users')
      .values({ ...row, joined_at: isJoined ? now : null })
      .execute()
    return id
  }
  const addOwned = async (email: string | null, isJoined?: boolean) => {
    const id = await addWorkspace()
    await addOwner(id, email, isJoined)
    return id
  }
  return { operator, finances, readBalance, addOwner, addOwned }
}

onEachDatabase(t, async (t: Test, newDb) => {
  t.test('the first workspace of a person, and no other one', async (t) => {
    const db = await newDb(t)
    const { operator, readBalance, addOwned } = await setUp(db)
    const first = await addOwned('eve@example.com')
    t.equal(await readBalance(first), TEST_CREDIT_MICROS)
    t.equal(await readBalance(first), TEST_CREDIT_MICROS, 'once')
    for (const email of ['eve@example.com', 'eve+1@example.com', 'EVE+2@example.com'])
      t.equal(await readBalance(await addOwned(email)), 0, email)
    t.equal(await readBalance(await addOwned('adam@example.com')), TEST_CREDIT_MICROS, 'another person')
    t.equal(await readBalance(operator.workspaceId), TEST_CREDIT_MICROS, 'the operator, without an address')

    for (const table of ['billing_entries', 'billing_accounts', 'users'] as const)
      await db.deleteFrom(table).where('workspace_id', '=', first).execute()
    await db.deleteFrom('workspaces').where('id', '=', first).execute()
    t.equal(await readBalance(await addOwned('eve@example.com')), 0, 'the first workspace is deleted')
  })

  t.test('the credit of an agent account waits until the address is confirmed', async (t) => {
    const db = await newDb(t)
    const { readBalance, addOwner, addOwned } = await setUp(db)
    const account = await addOwned(null, false)
    t.equal(await readBalance(account), 0)
    const invited = await addOwned('adam@example.com', false)
    t.equal(await readBalance(invited), 0, 'an invitation confirms nothing')
    await db
      .updateTable('users')
      .set({ email: 'eve@example.com', joined_at: 1 })
      .where('workspace_id', '=', account)
      .execute()
    t.equal(await readBalance(account), TEST_CREDIT_MICROS)
    await addOwner(account, 'second@example.com')
    t.equal(await readBalance(account), TEST_CREDIT_MICROS)
    t.equal(
      await readBalance(await addOwned('second@example.com')),
      TEST_CREDIT_MICROS,
      'a co-owner keeps theirs',
    )
  })

  t.test('20 workspaces of a person, all used at once', async (t) => {
    const db = await newDb(t)
    const { readBalance, addOwned } = await setUp(db)
    const ids: string[] = []
    for (let n = 0; n < 20; n++) ids.push(await addOwned(`eve+${n}@example.com`))
    const balances = await Promise.all(ids.map(readBalance))
    t.equal(
      balances.reduce((sum, balance) => sum + balance, 0),
      TEST_CREDIT_MICROS,
    )
  })
})
