// Billing: the ledger of each workspace, which the schedule of the workspace charges.

import type { Lifecycle } from '../boxes/lifecycle/lifecycle.ts'
import { observeRows } from '../db/row-changes.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { Mailer } from '../identity/mail/mailer.ts'
import type { Billing } from './billing.ts'
import { createFullCpuDetector, type FullCpuOptions } from './detect-full-cpu.ts'
import { createMeterObserver } from './meter.ts'
import { endAllMeters, meterExisting } from './meter-existing.ts'
import { createOwnerMails } from './owner-mails.ts'
import { createAccountReader } from './read-account.ts'
import { createUsageReader } from './read-usage.ts'
import { billingRoutes } from './routes.ts'
import { BALANCE_SCHEDULE } from './service.ts'
import type { BillingSettings } from './settings.ts'
import { type BalanceWatchOptions, createBalanceMail, createBalanceWatch } from './watch-balance.ts'

export type BillingModuleContext = ModuleBase & {
  config: BillingSettings
  billing: Billing
  mailer: Pick<Mailer, 'send'>
  lifecycle: Pick<Lifecycle, 'schedule'>
  boxMetrics: { service: Pick<FullCpuOptions, 'averageCpu'> }
  payments: Pick<BalanceWatchOptions, 'collect'>
}

/** In the order in which a purge deletes their rows. */
const TABLES = [
  { table: 'billing_meters', key: 'subject_id' },
  { table: 'billing_segments', key: 'subject_id' },
  { table: 'billing_totals', key: 'period' },
  { table: 'billing_entries', key: 'cause' },
  { table: 'billing_accounts', key: null },
] as const

export function billingModule(context: BillingModuleContext): Module {
  const { db, clock, log, config, billing, mailer, lifecycle, boxMetrics, payments } = context
  const routes = withTag(
    'Billing',
    billingRoutes({
      readUsage: createUsageReader({ db, clock, billing }),
      account: createAccountReader({ config, db, clock, billing }),
    }),
  )
  if (billing === null)
    return { routes, workspaceTables: TABLES, prepare: () => endAllMeters(db, clock.now()) }
  const { prices, finances, billingUrl } = billing
  const watch = createBalanceWatch({
    db,
    clock,
    log,
    prices,
    finances,
    warnBelowHours: config.balanceWarnHours,
    detectFullCpu: createFullCpuDetector({ db, clock, log, averageCpu: boxMetrics.service.averageCpu }),
    collect: payments.collect,
    scheduleBox: lifecycle.schedule,
  })
  const mailBalance = createOwnerMails({
    db,
    clock,
    log,
    finances,
    mailer,
    kind: 'mail_balance',
    compose: createBalanceMail(billingUrl),
  })
  return {
    routes,
    workspaceTables: TABLES,
    async prepare() {
      observeRows(db, createMeterObserver(clock))
      await meterExisting(db, finances, clock.now())
    },
    schedules: { handlers: { [BALANCE_SCHEDULE]: watch, mail_balance: mailBalance } },
  }
}
