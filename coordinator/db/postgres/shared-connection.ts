// The connection with which a coordinator shares a Postgres database with others: it holds the lock in shared mode, and receives
// their notifications. A lost connection is replaced in the background; queries use other connections meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { type CompiledQuery, type QueryExecutorProvider, sql } from 'kysely'
import type { Client, Notification } from 'pg'
import { newUuid } from '../../../shared/ids.ts'
import { withTimeout } from '../../base/timeout.ts'
import type { Message, OtherCoordinators, Receiver } from '../notification-hub.ts'
import {
  acquireLock,
  connectForLock,
  createConnectionName,
  describeTaken,
  findHolder,
  LockTakenError,
  tryAcquireLock,
} from './advisory-lock.ts'
import type { CoordinatorLock, CoordinatorLockOptions } from './coordinator-lock.ts'
import { decodeMessages, encodeMessages } from './notification-message.ts'

export type SharedConnectionOptions = CoordinatorLockOptions & {
  /**
   * The time between two probes, and the time that Postgres has to answer one. Without them, a half-open connection would look
   * like one without notifications. Default: 5 s.
   */
  probeMs?: number
}

const CHANNEL = 'boxwood'
const RETRY_MS = 500
const DEFAULT_PROBE_MS = 5_000

export class SharedConnection implements CoordinatorLock, OtherCoordinators {
  readonly #options: SharedConnectionOptions
  readonly #name = createConnectionName()
  /** Identifies the messages of this coordinator, whose subscribers have been called already. */
  readonly #id = newUuid()
  #client: Client | undefined
  #receiver: Receiver | undefined
  #reconnecting: Promise<void> = Promise.resolve()
  #probeTimer: NodeJS.Timeout | undefined
  #receivedUntil = 0
  /** A coordinator that uses the database alone has got the lock meanwhile. */
  #taken: LockTakenError | undefined
  #isClosed = false
  /** Set with the pool for queries. */
  closeConnections: () => void = () => undefined

  private constructor(options: SharedConnectionOptions) {
    this.#options = options
  }

  /** @throws LockTakenError when a coordinator that uses the database alone holds the lock for longer than `waitMs` */
  static async open(options: SharedConnectionOptions): Promise<SharedConnection> {
    const opened = new SharedConnection(options)
    const client = await connectForLock(options, opened.#name)
    await acquireLock(client, 'shared', options)
    try {
      await opened.#listen(client)
    } catch (error) {
      await client.end()
      throw error
    }
    return opened
  }

  get isHeld(): boolean {
    return this.#taken === undefined
  }

  async waitUntilHeld(): Promise<void> {
    if (this.#taken !== undefined) throw this.#taken
  }

  get receivedUntil(): number {
    return this.#receivedUntil
  }

  /** Messages that arrive before have no subscribers. */
  setReceiver(receiver: Receiver): void {
    this.#receiver = receiver
  }

  async send(trx: QueryExecutorProvider, messages: readonly Message[]): Promise<void> {
    await sql`select pg_notify(${CHANNEL}, ${encodeMessages(this.#id, messages)})`.execute(trx)
  }

  async execute({ sql: text, parameters }: CompiledQuery): Promise<void> {
    if (this.#client === undefined) throw new Error('there is no connection for notifications yet')
    // A lost client rejects, until another one replaces it.
    await this.#client.query(text, [...parameters])
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#probeTimer)
    await this.#client?.end()
    await this.#reconnecting
    // It may have been replaced meanwhile.
    clearTimeout(this.#probeTimer)
    await this.#client?.end()
  }

  async #listen(client: Client): Promise<void> {
    const startedAt = performance.now()
    client.on('notification', (notification) => this.#onNotification(notification))
    await client.query(`listen ${CHANNEL}`)
    this.#client = client
    this.#receivedUntil = startedAt
    client.once('end', () => this.#onDisconnect(client))
    this.#armProbe(client)
  }

  #onNotification({ payload = '' }: Notification): void {
    try {
      const { sender, messages, again } = decodeMessages(payload)
      if (sender === this.#id) return
      this.#receiver?.receive(messages, this.#onError)
      if (again.length > 0) this.#receiver?.reportGap(again, this.#onError)
    } catch (err) {
      this.#options.log.error(
        { err },
        'received a notification of another program; will read everything again',
      )
      this.#receiver?.reportGap(undefined, this.#onError)
    }
  }

  readonly #onError = (err: unknown): void =>
    this.#options.log.error({ err }, 'failed to apply a notification of another coordinator')

  /** @param startedAt of the last probe: a slow response does not delay the next one */
  #armProbe(client: Client, startedAt = performance.now()): void {
    const { probeMs = DEFAULT_PROBE_MS } = this.#options
    const ms = Math.max(0, startedAt + probeMs - performance.now())
    this.#probeTimer = setTimeout(() => void this.#probe(client, probeMs), ms).unref()
  }

  async #probe(client: Client, timeoutMs: number): Promise<void> {
    const startedAt = performance.now()
    try {
      await withTimeout(
        client.query('select 1'),
        timeoutMs,
        'the connection for notifications does not answer',
      )
    } catch (err) {
      if (this.#isClosed) return
      this.#options.log.warn({ err }, 'a probe of the connection for notifications has failed')
      // Closes the socket, because the client has an unanswered query.
      client.end().catch(() => undefined)
      return
    }
    // Postgres sends notifications before its next response.
    this.#receivedUntil = startedAt
    if (!this.#isClosed) this.#armProbe(client, startedAt)
  }

  #onDisconnect(client: Client): void {
    if (this.#isClosed || client !== this.#client) return
    clearTimeout(this.#probeTimer)
    this.#options.log.warn('lost the connection for notifications of other coordinators; will reconnect')
    this.#reconnecting = this.#reconnect()
  }

  async #reconnect(): Promise<void> {
    for (let isReported = false; !this.#isClosed; await sleep(RETRY_MS, undefined, { ref: false })) {
      try {
        if (!(await this.#tryReconnect())) continue
        if (this.#isClosed) return
        this.#options.log.warn('notifications of other coordinators arrive again')
        this.#receiver?.reportGap(undefined, this.#onError)
        return
      } catch (err) {
        if (err instanceof LockTakenError) {
          this.#taken = err
          return this.#options.onTaken(err)
        }
        if (!isReported) this.#options.log.error({ err }, 'the database is not available; will retry')
        isReported = true
      }
    }
  }

  async #tryReconnect(): Promise<boolean> {
    const { description } = this.#options
    const next = await connectForLock(this.#options, this.#name)
    try {
      // false also while a coordinator that wants to use the database alone waits for the others.
      if (await tryAcquireLock(next, 'shared')) await this.#listen(next)
      else {
        const holder = await findHolder(next, 'shared')
        if (holder !== undefined) throw describeTaken('shared', description, holder)
      }
      return this.#client === next
    } finally {
      if (this.#client !== next) await next.end()
    }
  }
}
