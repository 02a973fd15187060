// Opens billing. Needs only the database, so it exists before the modules: the admission uses it.
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { DEFAULT_PRICES, type PriceTable, readPrices } from './prices.ts'
import { createFinanceService, type FinanceService } from './service.ts'
import type { BillingSettings } from './settings.ts'

/** null: billing is off. */
export type Billing = {
  prices: PriceTable
  finances: FinanceService
  /** Where owners pay; null: an operator grants credit. */
  billingUrl: string | null
} | null

export type BillingOptions = {
  config: Pick<
    BillingSettings,
    'billing' | 'pricesFile' | 'freeCreditMicros' | 'balanceWarnHours' | 'cardOverdraftMicros'
  >
  db: Db
  clock: Clock
  urls: { public: string }
}

/** @throws StartError when the file of the prices is not valid. null: billing is off */
export const readPricesOf = ({
  billing,
  pricesFile,
}: Pick<BillingSettings, 'billing' | 'pricesFile'>): PriceTable | null => {
  if (!billing) return null
  return pricesFile === null ? DEFAULT_PRICES : readPrices(pricesFile)
}

/** @throws StartError when the file of the prices is not valid */
export function openBilling({ config, db, clock, urls }: BillingOptions): Billing {
  if (config.billing === 'off') return null
  const prices = config.pricesFile === null ? DEFAULT_PRICES : readPrices(config.pricesFile)
  const billingUrl = config.billing === 'stripe' ? `${urls.public}/workspace/billing` : null
  const finances = createFinanceService({
    db,
    clock,
    prices,
    freeCreditMicros: config.freeCreditMicros,
    warnBelowHours: config.balanceWarnHours,
    maxOverdraftMicros: config.cardOverdraftMicros,
    billingUrl,
  })
  return { prices, finances, billingUrl }
}
