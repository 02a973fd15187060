// The clock of the database, with which coordinators on several machines compare leases.
import { type RawBuilder, sql } from 'kysely'
import { dialectTraits } from './dialects.ts'

/** The time at which the statement runs, in milliseconds since the epoch. */
export const databaseTime = (db: { getExecutor(): { adapter: object } }): RawBuilder<number> =>
  sql.raw<number>(dialectTraits(db).currentTime)
