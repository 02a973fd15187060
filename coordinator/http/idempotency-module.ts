// The stored responses of requests with an Idempotency-Key (spec §4.1.6), and the deletions that can be repeated (§4.1.5).
import { LIMITS } from '../../shared/limits.ts'
import { deleteDeletionsBefore } from './deletion-store.ts'
import { DELETION_RETENTION_MS } from './deletions.ts'
import { deleteExpiredKeys } from './idempotency-store.ts'
import type { Module, ModuleBase } from './module.ts'

export const idempotencyModule = ({ db, clock }: ModuleBase): Module => ({
  schedules: {
    pruners: {
      idempotency_keys: (signal) => deleteExpiredKeys(db, clock.now() - LIMITS.idempotencyWindowMs, signal),
      deletions: (signal) => deleteDeletionsBefore(db, clock.now() - DELETION_RETENTION_MS, signal),
    },
  },
  workspaceTables: [
    { table: 'idempotency_keys', key: 'key' },
    { table: 'deletions', key: 'resource_id' },
  ],
})
