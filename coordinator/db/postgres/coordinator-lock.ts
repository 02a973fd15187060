// The advisory lock with which one coordinator uses a Postgres database. A connection of its own holds the lock.
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, ClientConfig } from 'pg'
import type { Logger } from 'pino'
import { newUuid } from '../../../shared/ids.ts'
import { withTimeout } from '../../base/timeout.ts'

export type CoordinatorLock = {
  readonly isHeld: boolean
  /** Rejects when a lost lock has not been regained after some seconds. */
  waitUntilHeld(): Promise<void>
  /** Releases the lock. */
  close(): Promise<void>
}

export type CoordinatorLockOptions = {
  connect(config: ClientConfig): Promise<Client>
  /** Names the database in messages. */
  description: string
  log: Pick<Logger, 'warn' | 'error'>
  /** How long to wait for a previous coordinator that is still stopping. */
  waitMs: number
  /** Another coordinator has got the lock after this one had lost its connection. */
  onTaken(error: Error): void
}

/** Any number that other programs in the same database do not use. */
const LOCK_KEY = 7_236_841_905
const LOCK_NOT_AVAILABLE = '55P03'
const RETRY_MS = 500
const QUERY_WAIT_MS = 10_000
/** The server detects within 25 s that the machine of the coordinator has disappeared, and releases the lock. */
const KEEP_ALIVE =
  'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3'
/** Postgres truncates longer names. */
const MAX_NAME_LENGTH = 63

type Holder = { pid: number; name: string }

/** Throws an Error for the operator when another coordinator holds the lock for longer than `waitMs`. */
export async function acquireCoordinatorLock(options: CoordinatorLockOptions): Promise<CoordinatorLock> {
  const { description, log, waitMs, onTaken } = options
  /** Identifies the connections of this coordinator. */
  const name = `boxwood ${newUuid().slice(0, 8)} pid ${process.pid} on ${hostname()}`.slice(
    0,
    MAX_NAME_LENGTH,
  )
  let isClosed = false
  let isHeld = true
  let client = await connect()
  let held: Promise<void> = Promise.resolve()

  try {
    await client.query(`set lock_timeout = ${waitMs}`)
    await client.query('select pg_advisory_lock($1)', [LOCK_KEY])
  } catch (error) {
    const holder = await findHolder(client)
    await client.end()
    throw isLockTimeout(error) ? describeTaken(description, holder) : error
  }
  client.once('end', onDisconnect)

  async function connect(): Promise<Client> {
    const connected = await options.connect({ application_name: name })
    await connected.query(KEEP_ALIVE)
    return connected
  }

  function onDisconnect(): void {
    if (isClosed) return
    isHeld = false
    log.warn('lost the connection that holds the lock of the database; queries wait until it is restored')
    held = regain()
    // Queries report the failure.
    held.catch(() => undefined)
  }

  async function regain(): Promise<void> {
    for (let isReported = false; !isClosed; await sleep(RETRY_MS, undefined, { ref: false })) {
      try {
        if (await tryRegain()) {
          isHeld = true
          return log.warn('regained the lock of the database')
        }
      } catch (err) {
        if (err instanceof LockTakenError) {
          onTaken(err)
          throw err
        }
        if (!isReported) log.error({ err }, 'the database is not available; will retry')
        isReported = true
      }
    }
    throw new Error('the database is closed')
  }

  async function tryRegain(): Promise<boolean> {
    const next = await connect()
    try {
      const { rows } = await next.query('select pg_try_advisory_lock($1) as locked', [LOCK_KEY])
      if (rows[0].locked === true) {
        client = next
        client.once('end', onDisconnect)
        return true
      }
      const holder = await findHolder(next)
      if (holder === undefined) return false
      // The server has not noticed that the earlier connection is lost.
      if (holder.name === name) await next.query('select pg_terminate_backend($1)', [holder.pid])
      else throw new LockTakenError(describeTaken(description, holder).message)
      return false
    } finally {
      if (client !== next) await next.end()
    }
  }

  return {
    get isHeld() {
      return isHeld
    },
    waitUntilHeld: () => withTimeout(held, QUERY_WAIT_MS, 'the database is not available'),
    async close() {
      isClosed = true
      await client.end()
      await held.catch(() => undefined)
      // The lock may have been regained meanwhile, with another client.
      await client.end()
    },
  }
}

const describeTaken = (database: string, holder: Holder | undefined): Error =>
  new Error(
    `Another coordinator uses the database ${database}${holder === undefined ? '' : ` (${holder.name})`}. Stop that coordinator, or set another database in BOXWOOD_DATABASE_URL.`,
  )

class LockTakenError extends Error {}

const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE

/** undefined: the lock has become free. The name is empty when the user may not see the connections of the holder. */
async function findHolder(client: Client): Promise<Holder | undefined> {
  const { rows } = await client.query<Holder>(
    `select activity.pid, coalesce(activity.application_name, '') as name
     from pg_locks lock join pg_stat_activity activity on activity.pid = lock.pid
     where lock.locktype = 'advisory' and lock.granted and lock.objsubid = 1
       and lock.database = (select oid from pg_database where datname = current_database())
       and (lock.classid::bigint << 32) | lock.objid::bigint = $1`,
    [LOCK_KEY],
  )
  return rows[0]
}
