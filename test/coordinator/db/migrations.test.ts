// Migrations that change existing rows.
import { sql } from 'kysely'
import t from 'tap'
import { post, toEntry } from '../../../coordinator/billing/ledger.ts'
import { findAccount, updateAccount } from '../../../coordinator/billing/store/accounts.ts'
import type { BillingEntryRow } from '../../../coordinator/billing/store/tables.ts'
import { boundReportedNumbers } from '../../../coordinator/db/migrations/0003-bound-reported-numbers.ts'
import { lifeOfABox } from '../../../coordinator/db/migrations/0006-life-of-a-box.ts'
import { boundedCredit } from '../../../coordinator/db/migrations/0024-bounded-credit.ts'
import { scopesDeletionsVersions } from '../../../coordinator/db/migrations/0025-scopes-deletions-versions.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { systemClock, toTimestampOrNull } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances, TEST_CREDIT_MICROS } from '../../support/finances.ts'
import { createOwner, createTestBoxService } from '../../support/workspace.ts'
import { finished, output, setUp } from '../history/commands/support.ts'

/** The state of the version before the migration 0024. */
async function revertBoundedCredit(db: Db): Promise<void> {
  for (const column of ['card_paid_micros', 'collection_micros', 'free_credit_decided_at'])
    await sql`alter table billing_accounts drop column ${sql.ref(column)}`.execute(db)
  await sql`drop table free_credits`.execute(db)
}

onEachDatabase(t, async (t, newDb) => {
  t.test('0003 makes a history with a number beyond 2^53 readable again', async (t) => {
    const { db, commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const [poisoned, intact] = [await run(), await run()]
    for (const { id } of [poisoned, intact])
      await report([
        output(id, 0, 'out'),
        output(id, 0, 'err', 'stderr'),
        finished(id, { stdoutBytes: 3, stderrBytes: 3 }),
      ])
    // The state that an earlier version stored for an output report with offset 2^53 - 1.
    await db
      .updateTable('commands')
      .set({ stdout_bytes: 2 ** 53, stdout_start: 2 ** 53 - 1 })
      .where('id', '=', poisoned.id)
      .execute()
    await db
      .updateTable('command_output')
      .set({ start_offset: 2 ** 53 })
      .where('command_id', '=', poisoned.id)
      .where('stream', '=', 'stdout')
      .execute()
    await db
      .updateTable('boxes')
      .set({ report_epoch: 'e', report_seq: 2 ** 53 - 1 })
      .execute()
    await sql`alter table signing_keys rename to sealing_keys`.execute(db)

    await boundReportedNumbers.up(db)

    const { history } = commands
    t.equal((await history.list(owner, boxId, {})).commands.length, 2)
    t.match(await history.get(owner, boxId, poisoned.id), { status: 'exited', stdoutTruncated: true })
    t.match(await history.getOutput(owner, boxId, poisoned.id, {}), { data: '', done: true })
    for (const [id, stream] of [
      [poisoned.id, 'stderr'],
      [intact.id, 'stdout'],
      [intact.id, 'stderr'],
    ] as const)
      t.match(await history.getOutput(owner, boxId, id, { stream }), { data: stream.slice(3), size: 3 })
    t.match(await db.selectFrom('boxes').selectAll().execute(), [{ report_epoch: null, report_seq: 0 }])
    t.equal((await db.selectFrom('signing_keys').selectAll().execute()).length, 1, 'the signing key is kept')
    await history.remove(owner, boxId, poisoned.id)
    await t.rejects(history.get(owner, boxId, poisoned.id), { code: 'not_found' })
  })

  t.test('0006 removes deadlines in the past, which earlier versions did not enforce', async (t) => {
    const db = await newDb(t)
    const boxes = createTestBoxService(db)
    const owner = await createOwner(db)
    const inAnHour = Date.now() + 60 * 60_000
    const cases = [
      { state: 'running', deadline: Date.now() - 1000, kept: null },
      { state: 'suspended', deadline: Date.now() - 1000, kept: null },
      { state: 'running', deadline: inAnHour, kept: inAnHour },
      { state: 'suspended', deadline: inAnHour, kept: inAnHour },
    ] as const
    const ids: string[] = []
    for (const { state, deadline } of cases) {
      const { id } = await boxes.create(owner, {})
      const values = { desired_state: state, observed_state: state, pause_at: deadline }
      await db.updateTable('boxes').set(values).where('id', '=', id).execute()
      ids.push(id)
    }
    for (const table of ['snapshot_jobs', 'snapshots', 'schedules', 'box_moves'])
      await sql`drop table ${sql.table(table)}`.execute(db)
    for (const index of ['boxes_by_source', 'boxes_frozen'])
      await sql`drop index ${sql.table(index)}`.execute(db)
    for (const column of ['suspended_as', 'archive_id', 'leftovers', 'source_snapshot_id', 'archive_bytes'])
      await sql`alter table boxes drop column ${sql.ref(column)}`.execute(db)
    await sql`alter table jobs drop column params`.execute(db)

    await lifeOfABox.up(db)

    const schedules = await db.selectFrom('schedules').selectAll().where('kind', '=', 'pause').execute()
    for (const [i, { kept }] of cases.entries()) {
      t.equal((await boxes.get(owner, ids[i] ?? '')).box.pauseAt, toTimestampOrNull(kept))
      const dueTimes = schedules.filter((row) => row.target_id === ids[i]).map((row) => row.due_at)
      t.same(dueTimes, kept === null ? [] : [kept])
    }
  })

  t.test(
    '0024 trusts the saved cards of an earlier version with what their workspaces have paid',
    async (t) => {
      const db = await newDb(t)
      const finances = createTestFinances(db, systemClock)
      const accounts = [
        { card: 'pm_1', payments: [20, 25], refunds: [5], trusted: 40 },
        { card: 'pm_2', payments: [5], refunds: [5, 5], trusted: 0 },
        { card: 'pm_3', payments: [], refunds: [], trusted: 0 },
        { card: null, payments: [25], refunds: [], trusted: 0 },
      ]
      const ids: string[] = []
      for (const { card, payments, refunds } of accounts) {
        const id = newId('workspace')
        ids.push(id)
        const workspace = { id, name: id, zero_data_retention: 0, created_at: Date.now() } as const
        await db.insertInto('workspaces').values(workspace).execute()
        await transaction(db, async (trx) => {
          await finances.load(trx, id)
          const account = await updateAccount(trx, id, { payment_method_id: card })
          const toRow =
            (kind: 'top_up' | 'refund') =>
            (dollars: number, index: number): BillingEntryRow =>
              toEntry({
                ...{ workspace_id: id, cause: `${kind}:${index}`, kind, at: 1 },
                ...{ debit: 'card_payments', credit: 'balance', amount_micros: dollars * 1_000_000 },
              })
          await post(trx, account, [...payments.map(toRow('top_up')), ...refunds.map(toRow('refund'))])
        })
      }
      await revertBoundedCredit(db)

      await boundedCredit.up(db)

      for (const [i, { trusted }] of accounts.entries()) {
        const account = await findAccount(db, ids[i] ?? '')
        t.match(account, { card_paid_micros: trusted * 1_000_000, collection_micros: null })
      }
    },
  )
  t.test('0024 gives no second free credit to the owners of workspaces that had it', async (t) => {
    const db = await newDb(t)
    const finances = createTestFinances(db, systemClock)
    await createOwner(db)
    async function addWorkspace(email: string): Promise<string> {
      const [id, now] = [newId('workspace'), Date.now() + 1]
      const workspace = { id, name: id, zero_data_retention: 0, created_at: now } as const
      await db.insertInto('workspaces').values(workspace).execute()
      for (const [role, address] of [
        ['owner', email],
        ['member', `member-of-${email}`],
      ] as const) {
        const user = { id: newId('user'), workspace_id: id, email: address, name: role, role } as const
        await db
          .insertInto('users')
          .values({ ...user, created_at: now, joined_at: now })
          .execute()
      }
      return id
    }
    const load = (id: string) => transaction(db, (trx) => finances.load(trx, id))
    const earlier = await addWorkspace('eve+1@example.com')
    await load(earlier)
    await revertBoundedCredit(db)

    await boundedCredit.up(db)

    t.equal((await load(earlier)).balanceMicros, TEST_CREDIT_MICROS, 'unchanged')
    const balances: number[] = []
    for (const email of ['eve@example.com', 'member-of-eve+1@example.com'])
      balances.push((await load(await addWorkspace(email))).balanceMicros)
    t.same(balances, [0, TEST_CREDIT_MICROS])
  })

  t.test('0025 limits the secrets that have a grant', async (t) => {
    const db = await newDb(t)
    const { workspaceId: workspace_id } = await createOwner(db)
    const created = { created_by: 'system', created_at: 1 }
    for (const id of ['sec_a', 'sec_b'])
      await db
        .insertInto('secrets')
        .values({
          ...{ id, workspace_id, name: id, description: null, hosts: '[]', placeholder: id, value: 'v1' },
          ...{
            key_id: 'k',
            scope: 'workspace',
            locations: '["header"]',
            updated_at: 1,
            last_rotated_at: null,
          },
          ...created,
        })
        .execute()
    const target = { box_id: 'deleted', hostname: 'fig', user_id: null, email: null }
    await db
      .insertInto('secret_grants')
      .values({ id: 'sgr_a', workspace_id, secret_id: 'sec_b', ...target, ...created })
      .execute()
    await sql`alter table secrets drop column scope`.execute(db)
    for (const table of ['deletions', 'program_versions'])
      await sql`drop table ${sql.table(table)}`.execute(db)

    await scopesDeletionsVersions.up(db)

    const rows = await db.selectFrom('secrets').select(['id', 'scope']).orderBy('id').execute()
    t.same(rows, [
      { id: 'sec_a', scope: 'workspace' },
      { id: 'sec_b', scope: 'granted' },
    ])
  })
})
