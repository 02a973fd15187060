// Assembles the service of enrolled machines.

import type { Clock } from '../../shared/clock.ts'
import type { Region } from '../../shared/tiers.ts'
import type { Admit } from '../admission/admit.ts'
import { forgetDeletedMachines } from '../boxes/updates.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import { type ClientLimiter, createClientLimiter } from '../identity/sessions/rate-limits.ts'
import { createEnrollments, type Enrollments } from './enrollments.ts'
import { createExchange, type ExchangeToken } from './exchange.ts'

export type MachinesOptions = {
  db: Db
  clock: Clock
  admit: Admit
  defaultRegion: Region
  /** See createClientLimiter. */
  addressLimitFactor?: number
}

export type Machines = {
  enrollments: Enrollments
  exchange: ExchangeToken
  limiter: ClientLimiter
  /** Forgets the machines whose boxes were deleted a year ago: their agents are not uninstalled any more. */
  pruneDeleted(signal: AbortSignal): Promise<number>
}

const DELETED_RETENTION_MS = 365 * 24 * 60 * 60_000
const PRUNE_BATCH_SIZE = 500

export function createMachines({ addressLimitFactor, ...options }: MachinesOptions): Machines {
  const { db, clock } = options
  return {
    enrollments: createEnrollments(options),
    exchange: createExchange(options),
    limiter: createClientLimiter({ clock, factor: addressLimitFactor ?? 1 }),
    pruneDeleted(signal) {
      const before = clock.now() - DELETED_RETENTION_MS
      return deleteInBatches(db, (trx) => forgetDeletedMachines(trx, before, PRUNE_BATCH_SIZE), signal)
    },
  }
}
