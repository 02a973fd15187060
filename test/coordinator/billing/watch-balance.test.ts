// The watch of a balance: the mails to the owners, the boxes that it suspends, and when it runs again.
import t, { type Test } from 'tap'
import { post, toEntry } from '../../../coordinator/billing/ledger.ts'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { createOwnerMails } from '../../../coordinator/billing/owner-mails.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { BALANCE_SCHEDULE, createFinanceService } from '../../../coordinator/billing/service.ts'
import { lockAccount } from '../../../coordinator/billing/store/accounts.ts'
import { createBalanceMail, createBalanceWatch } from '../../../coordinator/billing/watch-balance.ts'
import { updateBox } from '../../../coordinator/boxes/store/boxes.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Mail, MailOutcome } from '../../../coordinator/identity/mail/mailer.ts'
import type { Tier } from '../../../shared/tiers.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const HOUR_MS = 3_600_000
const START = Date.UTC(2030, 0, 1)

async function start(db: Db, freeCreditMicros: number, billingUrl: string | null = null) {
  const clock = createTestClock(START)
  observeRows(db, createMeterObserver(clock))
  const owner = await createOwner(db, clock)
  for (const role of ['owner', 'member', 'contractor'] as const) await addUser(db, owner, { role })
  await db
    .updateTable('users')
    .set((eb) => ({ joined_at: START, email: eb.fn.coalesce('email', eb.val('first@example.com')) }))
    .execute()
  const boxes = createTestBoxService(db, { clock })
  const options = { db, clock, prices: DEFAULT_PRICES, warnBelowHours: 24 }
  const finances = createFinanceService({
    ...options,
    freeCreditMicros,
    maxOverdraftMicros: 100_000_000,
    billingUrl,
  })
  const mails: Mail[] = []
  const smtp: { outcome: MailOutcome } = { outcome: 'sent' }
  const log = { info: () => undefined }
  const sendMail = createOwnerMails({
    db,
    clock,
    log,
    finances,
    mailer: {
      async send(mail) {
        mails.push(mail)
        return smtp.outcome
      },
    },
    kind: 'mail_balance',
    compose: createBalanceMail(billingUrl),
  })
  const scheduled: string[] = []
  const watch = createBalanceWatch({
    ...options,
    finances,
    log,
    scheduleBox: (id) => void scheduled.push(id),
    detectFullCpu: async () => undefined,
    collect: async () => undefined,
  })
  const { workspaceId } = owner
  await transaction(db, (trx) => finances.load(trx, workspaceId))

  async function createRunning(tier: Tier): Promise<string> {
    const { id } = await boxes.create(owner, { tier })
    await transaction(db, (trx) => updateBox(trx, id, { observed_state: 'running', updated_at: clock.now() }))
    return id
  }
  const addCredit = (amount: number, cause: string) =>
    transaction(db, async (trx) => {
      const account = await lockAccount(trx, workspaceId)
      if (account === undefined) throw new Error('there is no account')
      const accounts = { debit: 'manual_payments', credit: 'balance' } as const
      const entry = { workspace_id: workspaceId, cause, kind: 'credit', amount_micros: amount } as const
      await post(trx, account, [toEntry({ ...entry, ...accounts, at: clock.now() })])
    })
  const { signal } = new AbortController()
  const evaluate = () => watch(workspaceId, signal)
  /** Runs the due schedules of mails, as the scheduler does. */
  async function sendDueMails(): Promise<void> {
    const due = db.selectFrom('schedules').select('target_id').where('kind', '=', 'mail_balance')
    for (const { target_id } of await due.where('due_at', '<=', clock.now()).execute())
      await sendMail(target_id, signal)
  }
  async function run() {
    const next = await evaluate()
    await sendDueMails()
    return next
  }
  const readAccount = () => db.selectFrom('billing_accounts').selectAll().executeTakeFirstOrThrow()
  const readEvents = async () => {
    const events = await db.selectFrom('audit_log').select(['kind', 'detail']).orderBy('no').execute()
    return events.filter(({ kind }) => kind.startsWith('billing.') || kind === 'box.suspend')
  }
  return {
    clock,
    boxes,
    owner,
    mails,
    scheduled,
    smtp,
    evaluate,
    sendDueMails,
    run,
    createRunning,
    addCredit,
    readAccount,
    readEvents,
  }
}

const readDueTime = async (db: Db) => {
  const query = db.selectFrom('schedules').select('due_at').where('kind', '=', BALANCE_SCHEDULE)
  return (await query.executeTakeFirstOrThrow()).due_at
}

async function readDesired(db: Db): Promise<Record<string, string>> {
  const rows = await db.selectFrom('boxes').select(['id', 'desired_state']).execute()
  return Object.fromEntries(rows.map(({ id, desired_state: state }) => [id, state]))
}

onEachDatabase(t, async (t: Test, newDb) => {
  t.test('owners are warned once, and the boxes of an empty balance are suspended', async (t) => {
    const db = await newDb(t)
    const { clock, mails, scheduled, run, createRunning, addCredit, readAccount, readEvents } = await start(
      db,
      25 * 70_000,
    )
    const nano = await createRunning('nano')
    const lite = await createRunning('lite')
    const micro = await createRunning('micro')
    t.equal(await run(), START + HOUR_MS + 1000, 'when the balance becomes low')
    t.equal(await readDueTime(db), START + HOUR_MS + 1000)
    t.same(mails, [])

    clock.advance(HOUR_MS + 1000)
    await run()
    await run()
    t.same(mails.map(({ to }) => to).length, 2, 'each owner, once')
    t.notMatch(mails.map(({ to }) => to).join(), /member|contractor/)
    t.match(mails[0], {
      subject: 'The balance of your workspace is low',
      text: 'The balance of your workspace is $1.68, and its boxes cost $0.07 an hour. When it is empty, the boxes are suspended. Ask the operator of this Boxwood for credit.\n',
    })
    t.match(await readAccount(), { warned_at: clock.now(), emptied_at: null })
    t.match(await readEvents(), [{ kind: 'billing.low' }])
    t.same(scheduled, [])

    clock.advance(24 * HOUR_MS)
    mails.length = 0
    await run()
    t.equal(mails.length, 2)
    t.match(mails[0], { subject: 'Your boxes are suspended: the balance is empty', text: /keep their files/ })
    t.same(scheduled, [lite, micro, nano], 'the most expensive first')
    t.same(await readDesired(db), { [nano]: 'suspended', [lite]: 'suspended', [micro]: 'suspended' })
    t.match(await readAccount(), { emptied_at: clock.now() })
    await run()
    t.equal(mails.length, 2, 'once')
    t.same(scheduled.length, 3, 'boxes that are being suspended are left alone')
    t.match(await readEvents(), [
      { kind: 'billing.low' },
      { kind: 'billing.empty' },
      ...Array(3).fill({ kind: 'box.suspend' }),
    ])

    await addCredit(100_000_000, 'credit:1')
    await addCredit(100_000_000, 'credit:1')
    await run()
    t.match(await readAccount(), { warned_at: null, emptied_at: null })
    t.ok((await readAccount()).balance_micros < 150_000_000, 'the repeated credit counts once')
    t.equal(mails.length, 2)
    clock.advance(100 * 24 * HOUR_MS)
    await run()
    t.equal(mails.length, 4, 'the next time is mailed again')
  })

  t.test('boxes that start on an empty balance are suspended, and none is deleted', async (t) => {
    const db = await newDb(t)
    const { clock, boxes, owner, mails, scheduled, run } = await start(db, 0, 'https://example.com/billing')
    const { id } = await boxes.create(owner, { tier: 'nano' })
    t.equal(await run(), START + HOUR_MS + 60_000, 'after the next hour')
    t.match(mails[0], { text: /Add credit at https:\/\/example\.com\/billing\n$/ })
    t.same(scheduled, [id])
    clock.advance(30 * 24 * HOUR_MS)
    await run()
    t.same(await readDesired(db), { [id]: 'suspended' })
  })
  t.test('a mail that is not sent is sent later, with the balance of that time', async (t) => {
    const db = await newDb(t)
    const { clock, mails, smtp, evaluate, sendDueMails, addCredit, createRunning } = await start(
      db,
      1_000_000,
    )
    await createRunning('lite')
    clock.advance(2 * HOUR_MS)
    await evaluate()
    // The coordinator is killed here. The next one evaluates the same balance.
    await evaluate()
    smtp.outcome = 'unavailable'
    await sendDueMails()
    t.equal(mails.length, 2, 'each owner')
    await sendDueMails()
    t.equal(mails.length, 2, 'the next attempt is later')
    clock.advance(HOUR_MS)
    smtp.outcome = 'refused'
    await sendDueMails()
    t.equal(mails.length, 4)
    t.match(mails[3], { subject: 'The balance of your workspace is low', text: /is \$0\.88,/ })
    clock.advance(HOUR_MS)
    await sendDueMails()
    t.equal(mails.length, 4, 'a mail that the server refuses is not repeated')

    smtp.outcome = 'unavailable'
    clock.advance(30 * HOUR_MS)
    await evaluate()
    await sendDueMails()
    t.match(mails.slice(4), Array(2).fill({ subject: /suspended/ }))
    await addCredit(100_000_000, 'credit:1')
    await evaluate()
    clock.advance(HOUR_MS)
    smtp.outcome = 'sent'
    await sendDueMails()
    t.equal(mails.length, 6, 'there is nothing to report any more')
    t.same(await db.selectFrom('schedules').selectAll().where('kind', '=', 'mail_balance').execute(), [])
  })
  t.test('a workspace without boxes gets no mail about its empty balance', async (t) => {
    const db = await newDb(t)
    const { mails, run, createRunning, readAccount, readEvents } = await start(db, 0)
    await run()
    t.same([mails, await readEvents()], [[], []])
    t.match(await readAccount(), { warned_at: null, emptied_at: null })
    await createRunning('nano')
    await run()
    t.match(mails, Array(2).fill({ subject: /the balance is empty/ }))
  })

  t.test('the card of a closing workspace does not pay for boxes that run on', async (t) => {
    const db = await newDb(t)
    const { clock, scheduled, run, createRunning } = await start(db, 1_000_000)
    const card = { payment_method_id: 'pm', customer_id: 'cus', card_paid_micros: 1_000_000 }
    await db.updateTable('billing_accounts').set(card).execute()
    const lite = await createRunning('lite')
    clock.advance(30 * HOUR_MS)
    await run()
    t.same(scheduled, [], 'the card pays')
    await db.updateTable('workspaces').set({ closing_at: clock.now() }).execute()
    await run()
    t.same(scheduled, [lite])
  })
})
