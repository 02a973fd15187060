// The stored responses of requests with an Idempotency-Key (spec §4.1.6).
import { LIMITS } from '../../shared/limits.ts'
import { deleteExpiredKeys, releaseUnfinishedKeys } from './idempotency-store.ts'
import type { Module, ModuleBase } from './module.ts'

export const idempotencyModule = ({ db, clock }: ModuleBase): Module => ({
  schedules: {
    pruners: {
      idempotency_keys: (signal) => deleteExpiredKeys(db, clock.now() - LIMITS.idempotencyWindowMs, signal),
    },
  },
  workspaceTables: [{ table: 'idempotency_keys', key: 'key' }],
  prepare: () => releaseUnfinishedKeys(db),
})
