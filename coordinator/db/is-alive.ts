// Whether the coordinator that owns a row is alive (replicas/), for the queries on what coordinators own.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { databaseTime } from './database-time.ts'
import type { Db } from './open.ts'
import type { Trx } from './transaction.ts'

/** Whether the coordinator of a row of the table replicas is alive. */
export const isLeaseValid = (db: Db | Trx): RawBuilder<SqlBool> =>
  sql<SqlBool>`(replicas.lease_until is null or replicas.lease_until > ${databaseTime(db)})`

/** Whether the coordinator whose id is in the column `lease_owner` of the table is alive. False for null. */
export const isOwnerAlive = (db: Db | Trx, table: string): RawBuilder<SqlBool> =>
  sql<SqlBool>`exists (select 1 from replicas where replicas.id = ${sql.ref(`${table}.lease_owner`)} and ${isLeaseValid(db)})`

/** Whether the coordinator `owner` may take the row of the table, or has it: no other one that is alive has it. */
export const isFreeFor = (db: Db | Trx, table: string, owner: string): RawBuilder<SqlBool> =>
  sql<SqlBool>`(${sql.ref(`${table}.lease_owner`)} = ${owner} or not ${isOwnerAlive(db, table)})`
