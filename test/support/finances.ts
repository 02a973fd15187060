// The finances of test workspaces, with the default prices.
import { DEFAULT_PRICES } from '../../coordinator/billing/prices.ts'
import {
  createFinanceService,
  type FinanceService,
  type FinancesOptions,
} from '../../coordinator/billing/service.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { Clock } from '../../shared/clock.ts'

export const TEST_CREDIT_MICROS = 5_000_000
const TEST_OVERDRAFT_MICROS = 100_000_000

export const createTestFinances = (
  db: Db,
  clock: Clock,
  options: Partial<FinancesOptions> = {},
): FinanceService =>
  createFinanceService({
    db,
    clock,
    prices: DEFAULT_PRICES,
    freeCreditMicros: TEST_CREDIT_MICROS,
    warnBelowHours: 24,
    maxOverdraftMicros: TEST_OVERDRAFT_MICROS,
    billingUrl: null,
    ...options,
  })
