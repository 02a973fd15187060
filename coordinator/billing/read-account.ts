// Reads the billing of a workspace for its owners: prices, the plan, and the entries of the ledger.
import type { BillingDetails, BillingEntry, EntryList, EntryListQuery } from '../../shared/api/billing.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { TIER_NAMES } from '../../shared/tiers.ts'
import { NO_BILLING } from '../base/no-billing.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { encodeCursor, parseCursor } from '../http/page-cursor.ts'
import type { Billing } from './billing.ts'
import { diskMicros, type Prices, pricesAt } from './prices.ts'
import type { BillingSettings } from './settings.ts'
import { changeOfBalance, listEntries } from './store/accounts.ts'
import type { BillingEntryRow } from './store/tables.ts'

export type ReadAccountOptions = {
  config: Pick<BillingSettings, 'billing' | 'freeCreditMicros'>
  db: Db
  clock: Clock
  billing: Billing
}

const MS = 1000

export function createAccountReader({ config, db, clock, billing }: ReadAccountOptions) {
  async function get({ workspaceId }: Actor): Promise<BillingDetails> {
    if (billing === null)
      return {
        ...NO_BILLING,
        provider: 'off',
        hasCard: false,
        freeCreditMicros: 0,
        plan: null,
        prices: null,
      }
    const { finances, prices } = billing
    const loaded = await transaction(db, (trx) => finances.load(trx, workspaceId))
    const { account, plan } = loaded
    const { boxes, snapshots, secrets, terminals, tiers } = plan
    return {
      ...finances.present(loaded),
      provider: config.billing,
      hasCard: account.payment_method_id !== null,
      freeCreditMicros: config.freeCreditMicros,
      plan: {
        name: account.paid_at === null ? 'free' : 'paid',
        boxes,
        snapshots,
        secrets,
        terminals,
        tiers: [...tiers],
      },
      prices: presentPrices(pricesAt(prices, Math.floor(clock.now() / MS))),
    }
  }

  async function list({ workspaceId }: Actor, query: EntryListQuery): Promise<EntryList> {
    const { limit = LIMITS.entryPage.default, before } = query
    const cursor = before === undefined ? undefined : parseCursor(before, () => true)
    if (billing === null) return { entries: [], nextBefore: null }
    const rows = await listEntries(db, workspaceId, {
      before: cursor && { at: cursor.at, cause: cursor.id },
      limit: limit + 1,
    })
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    return {
      entries: page.map(presentEntry),
      nextBefore: rows.length > limit && last ? encodeCursor({ at: last.at, id: last.cause }) : null,
    }
  }

  return { get, list }
}

export type AccountReader = ReturnType<typeof createAccountReader>

const presentPrices = (prices: Prices): NonNullable<BillingDetails['prices']> => ({
  tiers: TIER_NAMES.map((tier) => ({
    tier,
    runningMicrosPerHour: prices.compute[tier],
    diskMicrosPerHour: diskMicros(tier, prices),
  })),
  snapshotGbMicrosPerHour: prices.snapshotGb,
})

const toInstant = (seconds: number | null): string | null =>
  seconds === null ? null : toTimestamp(seconds * MS)

const presentEntry = (row: BillingEntryRow): BillingEntry => ({
  id: row.cause,
  kind: row.kind,
  amountMicros: changeOfBalance(row),
  boxId: row.box_id,
  since: toInstant(row.since),
  until: toInstant(row.until),
  note: row.note,
  at: toTimestamp(row.at),
})
