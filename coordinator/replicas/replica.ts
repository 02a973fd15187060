// This coordinator among those that use one database: its id and its lease.
import { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import { newId } from '../../shared/ids.ts'
import { VERSION } from '../../shared/version.ts'
import { withTimeout } from '../base/timeout.ts'
import { closeConnections, getReceivedUntil } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import { createFleet, type Fleet } from './fleet.ts'
import { deleteReplica, deleteReplicasBefore, insertOnlyReplica, listAlive, renewReplica } from './store.ts'

export type ReplicaEvents = {
  /** The lease could not be renewed in time: what this coordinator owns ends now, and another one may take it. */
  lost: []
  /** The lease is valid again. */
  regained: []
  /** Another coordinator has stopped: what it owned is free. */
  stopped: [id: string]
  /** The members of the fleet have been read, as after each renewal of the lease. */
  membersRead: []
}

export type Replica = {
  /** What this coordinator owns has this id in its column `lease_owner`. */
  readonly id: string
  /** Whether other coordinators may use the database. */
  readonly isShared: boolean
  /** The host of its data directory (DataDirectory.host). It may work on files of this host only. */
  readonly host: string
  /**
   * Whether this coordinator may begin anything. The lease ends here before it ends in the database, so that two coordinators
   * never own one thing.
   */
  readonly isLeaseValid: boolean
  /** All coordinators of the database; null: this is the only one. */
  readonly fleet: Fleet | null
  readonly events: Pick<EventEmitter<ReplicaEvents>, 'on' | 'off'>
  /** Ends the lease. Call it when nothing that needs it runs any more. */
  close(): Promise<void>
}

/** Registers the only coordinator of a database, whose lease does not expire. */
export async function registerOnlyReplica(db: Db, host: string): Promise<Replica> {
  const id = newId('replica')
  await insertOnlyReplica(db, { id, version: VERSION, host, name: null, url: null, settings: null })
  return {
    id,
    host,
    isShared: false,
    isLeaseValid: true,
    fleet: null,
    events: createEvents(),
    close: () => deleteReplica(db, id),
  }
}

export type SharedReplicaOptions = {
  db: Db
  host: string
  /** The origin at which the other coordinators reach this one. */
  url: string
  /** For messages to the operator. */
  name: string
  /** Those that all coordinators of the database must share. */
  settings: Readonly<Record<string, string>>
  log: Pick<Logger, 'warn' | 'error'>
  /** How long the lease is valid after a renewal, by the clock of the database. Default: LEASE_MS. */
  leaseMs?: number
  /** After how long without a renewal, by the monotonic clock of this process, the lease counts as lost. Default: 10 s. */
  lostAfterMs?: number
  /** Default: 5 s. */
  renewEveryMs?: number
}

export const LEASE_MS = 15_000
/** After a failed renewal, which may have been that of one connection. */
const RETRY_MS = 1_000
/** For an answer of the database when the lease is lost. Without one, queries may be waiting for a broken connection. */
const ANSWER_MS = 2_000
/** Rows of coordinators that were killed remain this long. */
const RETENTION_MS = 24 * 60 * 60_000

const createEvents = () => new EventEmitter<ReplicaEvents>().setMaxListeners(0)

export type OtherReplica = { name: string; settings: Readonly<Record<string, string>> }

/** The coordinators of the database that are alive. Call it before this one is registered. */
export async function listOthers(db: Db): Promise<OtherReplica[]> {
  const rows = await listAlive(db)
  return rows.map(({ id, name, settings }) => ({ name: name ?? id, settings: JSON.parse(settings ?? '{}') }))
}

/** Registers one of several coordinators, and renews its lease until close(). */
export async function registerSharedReplica(options: SharedReplicaOptions): Promise<Replica> {
  const { db, host, log, url, name } = options
  const { leaseMs = LEASE_MS, lostAfterMs = 10_000, renewEveryMs = 5_000 } = options
  const id = newId('replica')
  const events = createEvents()
  const fleet = createFleet(db, id)
  const replica = { id, version: VERSION, host, name, url, settings: JSON.stringify(options.settings) }
  let others: ReadonlySet<string> = new Set()
  let isClosed = false
  let isLost = false
  /** When the last successful renewal began. */
  let renewedAt = performance.now()
  /** A coordinator that gets no notifications of revocations must not serve either. */
  const getValidUntil = () => Math.min(renewedAt, getReceivedUntil(db)) + lostAfterMs
  let lossTimer: NodeJS.Timeout | undefined
  /** Fires when the lease of another coordinator ends. */
  let endTimer: NodeJS.Timeout | undefined
  let renewTimer: NodeJS.Timeout | undefined
  let renewing: Promise<void> | undefined
  /** Does not delay a renewal: the end of another coordinator would end this one. */
  let finding: Promise<void> | undefined
  const renewTimeoutMs = lostAfterMs / 2

  const isLeaseValid = () => !isClosed && performance.now() < getValidUntil()

  async function renew(): Promise<void> {
    const begunAt = performance.now()
    await withTimeout(
      renewReplica(db, replica, leaseMs, fleet.getReport()),
      renewTimeoutMs,
      'the database does not answer',
    )
    renewedAt = begunAt
    scheduleLoss()
    if (isLost && isLeaseValid()) {
      isLost = false
      log.warn('the database has extended the lease of this coordinator again')
      events.emit('regained')
    }
  }

  function scheduleLoss(): void {
    clearTimeout(lossTimer)
    lossTimer = setTimeout(checkLoss, Math.max(0, getValidUntil() - performance.now())).unref()
  }

  function checkLoss(): void {
    if (isClosed || isLost) return
    // A timer may fire early.
    if (isLeaseValid()) {
      scheduleLoss()
      return
    }
    isLost = true
    log.error('this coordinator could not extend its lease in the database; other coordinators take over')
    events.emit('lost')
    void closeUnlessAnswered()
  }

  /** A process that had no CPU time, as during a start, keeps its queries when the database answers at once. */
  async function closeUnlessAnswered(): Promise<void> {
    try {
      await withTimeout(renew(), ANSWER_MS, 'the database does not answer')
    } catch {
      if (isLost && !isClosed) closeConnections(db)
    }
  }

  async function findStopped(): Promise<void> {
    const members = (await fleet.read()).filter((member) => member.id !== id)
    const alive = new Set(members.map((member) => member.id))
    // A coordinator that renews its lease never comes close to its end.
    const remainingMs = Math.min(...members.map(({ remainingMs }) => remainingMs ?? Infinity))
    clearTimeout(endTimer)
    if (remainingMs < renewEveryMs) endTimer = setTimeout(() => find(), remainingMs + 1).unref()
    const stopped = [...others].filter((other) => !alive.has(other))
    others = alive
    for (const other of stopped) events.emit('stopped', other)
    events.emit('membersRead')
    if (stopped.length > 0) await deleteReplicasBefore(db, RETENTION_MS)
  }

  function find(): void {
    if (isClosed) return
    finding ??= findStopped()
      .catch((err: unknown) => log.warn({ err }, 'failed to read the other coordinators; will retry'))
      .finally(() => {
        finding = undefined
      })
  }

  function scheduleRenewal(ms: number): void {
    if (isClosed) return
    renewTimer = setTimeout(() => {
      renewing = renewAndSchedule()
    }, ms).unref()
  }

  async function renewAndSchedule(): Promise<void> {
    const begunAt = performance.now()
    try {
      await renew()
      find()
      scheduleRenewal(Math.max(0, begunAt + renewEveryMs - performance.now()))
    } catch (err) {
      log.warn({ err }, 'failed to extend the lease of this coordinator; will retry')
      scheduleRenewal(Math.min(RETRY_MS, renewEveryMs))
    }
  }

  await renew()
  await findStopped()
  scheduleRenewal(renewEveryMs)

  return {
    id,
    isShared: true,
    host,
    get isLeaseValid() {
      return isLeaseValid()
    },
    fleet,
    events,
    async close() {
      isClosed = true
      clearTimeout(renewTimer)
      clearTimeout(endTimer)
      clearTimeout(lossTimer)
      await renewing
      await finding
      await deleteReplica(db, id)
    },
  }
}
