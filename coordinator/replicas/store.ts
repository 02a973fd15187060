// Queries on the coordinators that use the database. Times are milliseconds since the epoch, by the clock of the database.
import { sql } from 'kysely'
import { databaseTime } from '../db/database-time.ts'
import { isLeaseValid } from '../db/is-alive.ts'
import { executeAtOnce } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'

export type ReplicaRow = {
  id: string
  /** The version of its program. */
  version: string
  /** The host of its data directory (DataDirectory.host). null: its version knows no hosts. */
  host: string | null
  /** For messages to the operator; null: it is the only one. */
  name: string | null
  /** The origin at which the other coordinators reach it; null: it is the only one. */
  url: string | null
  /** JSON of the settings that all must share (server/shared-settings/); null: it is the only one. */
  settings: string | null
  /** Until when it is alive; null: it is the only coordinator, and alive until the next one starts. */
  lease_until: number | null
  started_at: number
  /** JSON of AgentBuilds (fleet.ts); null: it has none yet, or is the only one. */
  agent_builds: string | null
  /** The number of agents that were connected to it when it extended its lease; null: it does not accept agents, or is the only one. */
  tunnels: number | null
}

declare module '../db/schema.ts' {
  interface Tables {
    replicas: ReplicaRow
  }
}

export type NewReplica = Pick<ReplicaRow, 'id' | 'version' | 'name' | 'url' | 'settings'> & { host: string }

/** What a coordinator reports of itself. */
export type ReplicaReport = Pick<ReplicaRow, 'agent_builds' | 'tunnels'>

/** Registers the only coordinator: those before it have stopped, and what they owned is free. */
export const insertOnlyReplica = (db: Db, replica: NewReplica): Promise<void> =>
  transaction(db, async (trx) => {
    await trx.deleteFrom('replicas').execute()
    await trx
      .insertInto('replicas')
      .values({
        ...replica,
        lease_until: null,
        started_at: databaseTime(trx),
        agent_builds: null,
        tunnels: null,
      })
      .execute()
  })

/** Registers the coordinator, or extends its lease and stores its number of tunnels. */
export async function renewReplica(
  db: Db,
  replica: NewReplica,
  leaseMs: number,
  report: ReplicaReport = { agent_builds: null, tunnels: null },
): Promise<void> {
  const lease_until = sql<number>`${databaseTime(db)} + ${sql.lit(leaseMs)}`
  const statement = db
    .insertInto('replicas')
    .values({ ...replica, ...report, lease_until, started_at: databaseTime(db) })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ tunnels: report.tunnels, lease_until }))
    .compile()
  await executeAtOnce(db, statement)
}

export async function storeAgentBuilds(db: Db, id: string, agent_builds: string | null): Promise<void> {
  await db.updateTable('replicas').set({ agent_builds }).where('id', '=', id).execute()
}

/** Stores that the coordinator does not accept agents. */
export async function storeStopping(db: Db, id: string): Promise<void> {
  await db.updateTable('replicas').set({ tunnels: null }).where('id', '=', id).execute()
}

export async function isReplicaAlive(trx: Trx, id: string): Promise<boolean> {
  const query = trx.selectFrom('replicas').select('id').where('id', '=', id)
  return (await query.where(isLeaseValid(trx)).executeTakeFirst()) !== undefined
}

export async function isHostAlive(db: Db | Trx, host: string): Promise<boolean> {
  const query = db.selectFrom('replicas').select('id').where('host', '=', host).limit(1)
  return (await query.where(isLeaseValid(db)).executeTakeFirst()) !== undefined
}

/** The hosts with a coordinator that is alive. */
export async function listAliveHosts(db: Db): Promise<Set<string>> {
  const rows = await db.selectFrom('replicas').select('host').where(isLeaseValid(db)).execute()
  return new Set(rows.flatMap(({ host }) => host ?? []))
}

/** How long a coordinator has its lease, in milliseconds. */
const remainingMs = (db: Db) => sql<number | null>`lease_until - ${databaseTime(db)}`.as('remaining_ms')

export type AliveReplica = ReplicaRow & {
  /** null: the lease does not expire. */
  remaining_ms: number | null
}

export const listAlive = (db: Db): Promise<AliveReplica[]> =>
  db
    .selectFrom('replicas')
    .selectAll()
    .select(remainingMs(db))
    .where(isLeaseValid(db))
    .orderBy('id')
    .execute()

/** Those that have a lease, also one that has expired. */
export const listWithLeases = (db: Db) =>
  db
    .selectFrom('replicas')
    .select(['id', 'name', 'version', 'host', 'tunnels'])
    .select(remainingMs(db))
    .where('lease_until', 'is not', null)
    .orderBy('name')
    .orderBy('id')
    .execute()

/** null: there is no such coordinator, or it is the only one. */
export async function findReplicaUrl(db: Db, id: string): Promise<string | null> {
  const row = await db.selectFrom('replicas').select('url').where('id', '=', id).executeTakeFirst()
  return row?.url ?? null
}

export async function deleteReplica(db: Db, id: string): Promise<void> {
  await db.deleteFrom('replicas').where('id', '=', id).execute()
}

/** Deletes the rows of coordinators that were killed. */
export async function deleteReplicasBefore(db: Db, ageMs: number): Promise<void> {
  const before = sql<number>`${databaseTime(db)} - ${sql.lit(ageMs)}`
  await db.deleteFrom('replicas').where('lease_until', '<', before).execute()
}
