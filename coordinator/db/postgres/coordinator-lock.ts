// The lock with which one coordinator uses a Postgres database alone. A connection of its own holds the lock.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { Logger } from 'pino'
import { withTimeout } from '../../base/timeout.ts'
import {
  acquireLock,
  connectForLock,
  createConnectionName,
  describeTaken,
  findHolder,
  type LockConnectionOptions,
  LockTakenError,
  tryAcquireLock,
} from './advisory-lock.ts'

export type CoordinatorLock = {
  readonly isHeld: boolean
  /** Rejects when a lost lock has not been regained after some seconds. */
  waitUntilHeld(): Promise<void>
  /** Releases the lock. */
  close(): Promise<void>
}

export type CoordinatorLockOptions = LockConnectionOptions & {
  log: Pick<Logger, 'warn' | 'error'>
  /** Another coordinator has got the lock after this one had lost its connection. */
  onTaken(error: Error): void
}

const RETRY_MS = 500
const QUERY_WAIT_MS = 10_000

/** Throws an Error for the operator when another coordinator holds the lock for longer than `waitMs`. */
export async function acquireCoordinatorLock(options: CoordinatorLockOptions): Promise<CoordinatorLock> {
  const { description, log, onTaken } = options
  const name = createConnectionName()
  const connect = () => connectForLock(options, name)
  let isClosed = false
  let isHeld = true
  let client = await connect()
  let held: Promise<void> = Promise.resolve()

  await acquireLock(client, 'exclusive', options)
  client.once('end', onDisconnect)

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
    const next: Client = await connect()
    try {
      if (await tryAcquireLock(next, 'exclusive')) {
        client = next
        client.once('end', onDisconnect)
        return true
      }
      const holder = await findHolder(next, 'exclusive')
      if (holder === undefined) return false
      // The server has not noticed that the earlier connection is lost.
      if (holder.name === name) await next.query('select pg_terminate_backend($1)', [holder.pid])
      else throw describeTaken('exclusive', description, holder)
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
