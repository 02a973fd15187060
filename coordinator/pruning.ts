// Lists the deletions of what has expired, for the schedules.
import { once } from 'node:events'
import type { Clock } from '../shared/clock.ts'
import { LIMITS } from '../shared/limits.ts'
import type { AgentAccounts } from './accounts/agent-accounts.ts'
import { pruneAuditLog } from './audit/prune.ts'
import type { DeleteOfBox } from './boxes/delete-rows.ts'
import { pruneBoxes } from './boxes/prune.ts'
import type { Commands } from './commands/commands.ts'
import type { Db } from './db/open.ts'
import { deleteExpiredKeys } from './http/idempotency-store.ts'
import type { Pruner } from './jobs/scheduler.ts'
import type { Machines } from './machines/machines.ts'
import { pruneMetrics } from './metrics/retention.ts'
import type { OperationService } from './operations/service.ts'
import { loadAuditRetentionDays } from './policies/service.ts'
import type { ProcessSnapshots } from './process-snapshots/process-snapshots.ts'
import type { Sessions } from './sessions/sessions.ts'
import type { Snapshots } from './snapshots/snapshots.ts'
import type { TicketService } from './tickets/service.ts'

export type PruningOptions = {
  db: Db
  clock: Clock
  /** Days that a deleted box and its history stay readable. */
  deletedBoxDays: number
  operations: Pick<OperationService, 'prune'>
  commands: Pick<Commands, 'prune'>
  processSnapshots: Pick<ProcessSnapshots, 'prune'>
  snapshots: Pick<Snapshots, 'prune'>
  tickets: Pick<TicketService, 'prune'>
  machines: Pick<Machines, 'enrollments' | 'pruneDeleted'>
  sessions: Pick<Sessions, 'prune'>
  agentAccounts: Pick<AgentAccounts, 'prune'>
  deleteHistory: readonly DeleteOfBox[]
}

/** By the names that their schedules have. */
export function createPruners(options: PruningOptions): Record<string, Pruner> {
  const {
    db,
    clock,
    deletedBoxDays,
    operations,
    commands,
    processSnapshots,
    snapshots,
    sessions,
    agentAccounts,
    tickets,
    machines,
    deleteHistory,
  } = options
  return {
    audit_log: (signal) =>
      pruneAuditLog({ db, clock, loadRetentionDays: (id) => loadAuditRetentionDays(db, id) }, signal),
    agent_accounts: (signal) => agentAccounts.prune(signal),
    boxes: (signal) => pruneBoxes({ db, clock, retentionDays: deletedBoxDays, deleteHistory }, signal),
    // Stopped by the close() of the service.
    commands: (signal) => Promise.race([commands.prune(), once(signal, 'abort')]),
    deleted_machines: (signal) => machines.pruneDeleted(signal),
    enrollments: (signal) => machines.enrollments.prune(signal),
    idempotency_keys: (signal) => deleteExpiredKeys(db, clock.now() - LIMITS.idempotencyWindowMs, signal),
    metrics: (signal) => pruneMetrics({ db, clock }, signal),
    operations: () => operations.prune(),
    process_snapshots: (signal) => processSnapshots.prune(signal),
    sessions: (signal) => sessions.prune(signal),
    snapshots: () => snapshots.prune(),
    tickets: (signal) => tickets.prune(signal),
  }
}
