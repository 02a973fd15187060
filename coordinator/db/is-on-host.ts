// Whether the files of a row are on a host (replicas/hosts.ts), for the queries on boxes, snapshots and machines.
import { type RawBuilder, type SqlBool, sql } from 'kysely'

/** True also for a row without a host, such as an enrolled machine. */
export const isOnHost = (table: string, host: string): RawBuilder<SqlBool> => {
  const column = sql.ref(`${table}.host`)
  return sql<SqlBool>`(${column} is null or ${column} = ${host})`
}
