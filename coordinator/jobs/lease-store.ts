// Queries on the leases of jobs: a job is run by the coordinator in its column `lease_owner`, while that one is alive.

import { isFreeFor } from '../db/is-alive.ts'
import { isOnHost } from '../db/is-on-host.ts'
import type { Db } from '../db/open.ts'
import type { Replica } from '../replicas/replica.ts'

/** The retry time of a job that waits for the agent of a machine. It is never due by itself. */
export const UNTIL_CONNECTED = 8_640_000_000_000_000

/** The tables of jobs, with the column of the job's target, and the table of the targets. */
const TARGETS = {
  jobs: { id: 'box_id', targets: 'boxes' },
  snapshot_jobs: { id: 'snapshot_id', targets: 'snapshots' },
} as const

/**
 * The queries of both tables have the same text, apart from these names. For `snapshot_jobs` the casts are false: they give
 * Kysely one type for both tables, which have the columns of the queries in common.
 */
const namesOf = (table: keyof typeof TARGETS) => ({
  table: table as 'jobs',
  id: TARGETS[table].id as 'box_id',
  targets: TARGETS[table].targets as 'boxes',
})

export type Leases = {
  /**
   * The targets of the jobs that are due at the time, in milliseconds since the epoch, and that no other coordinator runs. With
   * those that this one runs: it may have failed to write that it does so no more. Without those of other hosts.
   */
  listDueIds(now: number): Promise<string[]>
  /** The earliest time at which another job becomes due; undefined when there is none. */
  findNextDueTime(now: number): Promise<number | undefined>
  /** Releases the lease and leaves the job unchanged. */
  release(id: string): Promise<void>
}

export function createLeases(
  db: Db,
  jobTable: keyof typeof TARGETS,
  { id: owner, host }: Pick<Replica, 'id' | 'host'>,
): Leases {
  const { table, id: idColumn, targets } = namesOf(jobTable)
  return {
    async listDueIds(now) {
      const rows = await db
        .selectFrom(table)
        .select(idColumn)
        .where((eb) => eb.or([eb('next_retry_at', 'is', null), eb('next_retry_at', '<=', now)]))
        .where(isFreeFor(db, table, owner))
        // A scalar subquery reads the row of each due job. Postgres may turn "exists" into a join that reads all rows.
        .where(({ selectFrom }) =>
          selectFrom(targets)
            .select(isOnHost(targets, host).as('is_on_host'))
            .whereRef(`${targets}.id`, '=', `${table}.${idColumn}`)
            .$asScalar(),
        )
        .execute()
      return rows.map((row) => row[idColumn])
    },
    async findNextDueTime(now) {
      const row = await db
        .selectFrom(table)
        .select('next_retry_at')
        .where('next_retry_at', '>', now)
        .where('next_retry_at', '<', UNTIL_CONNECTED)
        .orderBy('next_retry_at')
        .limit(1)
        .executeTakeFirst()
      return row?.next_retry_at ?? undefined
    },
    async release(id) {
      await db
        .updateTable(table)
        .set({ lease_owner: null })
        .where(idColumn, '=', id)
        .where('lease_owner', '=', owner)
        .execute()
    },
  }
}
