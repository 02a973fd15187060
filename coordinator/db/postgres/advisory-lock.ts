// The advisory lock of a Postgres database: a coordinator that uses the database alone holds it exclusively, and coordinators
// that share the database hold it in shared mode.
import { hostname } from 'node:os'
import type { Client, ClientConfig } from 'pg'
import { newUuid } from '../../../shared/ids.ts'

export type LockMode = 'exclusive' | 'shared'

export type Holder = { pid: number; name: string; mode: LockMode }

export type LockConnectionOptions = {
  connect(config: ClientConfig): Promise<Client>
  /** Names the database in messages. */
  description: string
  /** How long to wait for a previous coordinator that is still stopping. */
  waitMs: number
}

/** Any number that other programs in the same database do not use. */
const LOCK_KEY = 7_236_841_905
const LOCK_NOT_AVAILABLE = '55P03'
/** The server detects within 25 s that the machine of the coordinator has disappeared, and releases the lock. */
const KEEP_ALIVE =
  'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3'
/** Postgres truncates longer names. */
const MAX_NAME_LENGTH = 63
const LOCKS = {
  exclusive: { wait: 'pg_advisory_lock', try: 'pg_try_advisory_lock' },
  shared: { wait: 'pg_advisory_lock_shared', try: 'pg_try_advisory_lock_shared' },
} as const

/** Another coordinator holds the lock in a mode that excludes this one. The message is for the operator. */
export class LockTakenError extends Error {}

/** Identifies the connections of this coordinator. */
export const createConnectionName = (): string =>
  `boxwood ${newUuid().slice(0, 8)} pid ${process.pid} on ${hostname()}`.slice(0, MAX_NAME_LENGTH)

export async function connectForLock(
  { connect }: Pick<LockConnectionOptions, 'connect'>,
  name: string,
): Promise<Client> {
  const client = await connect({ application_name: name })
  await client.query(KEEP_ALIVE)
  return client
}

/** Ends the client when it fails. @throws LockTakenError */
export async function acquireLock(
  client: Client,
  mode: LockMode,
  { description, waitMs }: LockConnectionOptions,
): Promise<void> {
  try {
    await client.query(`set lock_timeout = ${waitMs}`)
    await client.query(`select ${LOCKS[mode].wait}($1)`, [LOCK_KEY])
  } catch (error) {
    const holder = await findHolder(client, mode)
    await client.end()
    throw isLockTimeout(error) ? describeTaken(mode, description, holder) : error
  }
}

export async function tryAcquireLock(client: Client, mode: LockMode): Promise<boolean> {
  const { rows } = await client.query(`select ${LOCKS[mode].try}($1) as locked`, [LOCK_KEY])
  return rows[0].locked === true
}

export function describeTaken(
  mode: LockMode,
  database: string,
  holder: Pick<Holder, 'name' | 'mode'> | undefined,
): LockTakenError {
  const name = holder === undefined ? '' : ` (${holder.name})`
  if (mode === 'shared')
    return new LockTakenError(
      `Another coordinator uses the database ${database} alone${name}. Stop that coordinator, or configure it to share the database.`,
    )
  return new LockTakenError(
    holder?.mode === 'shared'
      ? `Other coordinators share the database ${database}${name}. Stop all of them, or configure this one to share the database too.`
      : `Another coordinator uses the database ${database}${name}. Stop that coordinator, or set another database in BOXWOOD_DATABASE_URL.`,
  )
}

const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE

/**
 * Finds a holder that excludes a lock in this mode. undefined: the lock has become free. The name is empty when the user may not
 * see the connections of the holder.
 */
export async function findHolder(client: Client, mode: LockMode): Promise<Holder | undefined> {
  const { rows } = await client.query<Holder>(
    `select activity.pid, coalesce(activity.application_name, '') as name,
       case lock.mode when 'ExclusiveLock' then 'exclusive' else 'shared' end as mode
     from pg_locks lock join pg_stat_activity activity on activity.pid = lock.pid
     where lock.locktype = 'advisory' and lock.granted and lock.objsubid = 1
       and lock.database = (select oid from pg_database where datname = current_database())
       and (lock.classid::bigint << 32) | lock.objid::bigint = $1
       and ($2 = 'exclusive' or lock.mode = 'ExclusiveLock')`,
    [LOCK_KEY, mode],
  )
  return rows[0]
}
