// Selects a page of a list with a condition of SQL.
import { type RawBuilder, type SqlBool, sql } from 'kysely'

/**
 * The rows after a position of a list that is ordered by a time and then by the id, both descending.
 * @param position the last row of the previous page; its time in milliseconds since the epoch
 */
export function whereBefore(
  timeColumn: 'created_at' | 'requested_at',
  { at, id }: { at: number; id: string },
): RawBuilder<SqlBool> {
  const time = sql.ref(timeColumn)
  // The first comparison alone lets the planner use an index on the time.
  return sql<SqlBool>`(${time} <= ${at} and (${time} < ${at} or id < ${id}))`
}
