// Lists the coordinators of a database for the operator.
import type { ReplicaStatus } from '../../shared/coordinator-process.ts'
import type { Db } from '../db/open.ts'
import { LEASE_MS } from './replica.ts'
import { listWithLeases } from './store.ts'

/** Empty: the only coordinator uses the database, or none. */
export async function listStatuses(db: Db): Promise<ReplicaStatus[]> {
  const rows = await listWithLeases(db)
  return rows.map(({ id, name, version, host, tunnels, remaining_ms }) => ({
    id,
    name: name ?? id,
    version,
    host,
    tunnels,
    leaseAgeMs: Math.max(0, LEASE_MS - (remaining_ms ?? LEASE_MS)),
    isAlive: remaining_ms === null || remaining_ms > 0,
  }))
}
