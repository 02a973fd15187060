// Queries on the leases of jobs. Times are milliseconds since the epoch.
import type { Db } from '../db/open.ts'

/** The retry time of a job that waits for the agent of a machine. It is never due by itself. */
export const UNTIL_CONNECTED = 8_640_000_000_000_000

export type Lease = { owner: string; now: number; leaseMs: number }

/** The tables of jobs, with the column of the job's target. */
const TARGETS = { jobs: 'box_id', snapshot_jobs: 'snapshot_id' } as const

/**
 * The queries of both tables have the same text, apart from these names. For `snapshot_jobs` the casts are false: they give
 * Kysely one type for both tables, which have the columns of the queries in common.
 */
const namesOf = (table: keyof typeof TARGETS) => ({ table: table as 'jobs', id: TARGETS[table] as 'box_id' })

export type Leases = {
  /** The targets of the jobs that are due and not leased. An expired lease does not count. */
  listDueIds(now: number): Promise<string[]>
  /**
   * The earliest time at which another job becomes due; undefined when there is none. A job is due when its retry time has
   * been reached and its lease has expired.
   */
  findNextDueTime(now: number): Promise<number | undefined>
  /** Extends the lease. Resolves to false when it is lost: another coordinator may run the job. */
  renew(id: string, lease: Lease): Promise<boolean>
  /** Releases the lease and leaves the job unchanged. */
  release(id: string, owner: string): Promise<void>
  /** Releases all leases, at the start of the only coordinator: the coordinators that held them have stopped. */
  reset(): Promise<void>
}

export function createLeases(db: Db, jobTable: keyof typeof TARGETS): Leases {
  const { table, id: idColumn } = namesOf(jobTable)
  return {
    async listDueIds(now) {
      const rows = await db
        .selectFrom(table)
        .select(idColumn)
        .where((eb) => eb.or([eb('next_retry_at', 'is', null), eb('next_retry_at', '<=', now)]))
        .where((eb) => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', now)]))
        .execute()
      return rows.map((row) => row[idColumn])
    },
    async findNextDueTime(now) {
      const rows = await db
        .selectFrom(table)
        .select(['next_retry_at', 'lease_until'])
        .where((eb) =>
          eb.or([
            eb.and([eb('next_retry_at', '>', now), eb('next_retry_at', '<', UNTIL_CONNECTED)]),
            eb('lease_until', '>', now),
          ]),
        )
        .execute()
      const dueTimes = rows.map((row) => Math.max(row.next_retry_at ?? 0, row.lease_until ?? 0))
      return dueTimes.length === 0 ? undefined : dueTimes.reduce((a, b) => Math.min(a, b))
    },
    async renew(id, { owner, now, leaseMs }) {
      const { numUpdatedRows } = await db
        .updateTable(table)
        .set({ lease_until: now + leaseMs })
        .where(idColumn, '=', id)
        .where('lease_owner', '=', owner)
        .executeTakeFirst()
      return numUpdatedRows > 0n
    },
    async release(id, owner) {
      await db
        .updateTable(table)
        .set({ lease_owner: null, lease_until: null })
        .where(idColumn, '=', id)
        .where('lease_owner', '=', owner)
        .execute()
    },
    async reset() {
      await db.updateTable(table).set({ lease_owner: null, lease_until: null }).execute()
    },
  }
}
