// Buffers each box's latest heartbeat, and its new list of listening ports, in memory. Writes all changed ones in one transaction
// at intervals.
import type { Logger } from 'pino'
import type { Vitals } from '../../../shared/api/boxes.ts'
import type { ListeningPort } from '../../../shared/api/process-snapshots.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { updatePorts, updateVitals } from '../store/heartbeats.ts'

/** `at`: milliseconds since the epoch. */
export type Heartbeat = { vitals: Vitals; at: number }
export type ReportedPorts = { ports: readonly ListeningPort[]; at: number }

export type Heartbeats = {
  /** Timestamps the heartbeat with the coordinator's clock: the clock of a box is not trusted. */
  record(boxId: string, vitals: Vitals): void
  /** The latest heartbeat that this coordinator has received from the box, written or not. */
  latest(boxId: string): Heartbeat | undefined
  /** Replaces the list of the box. */
  recordPorts(boxId: string, ports: readonly ListeningPort[]): void
  /** The list that this coordinator has received from the box and not written yet. */
  latestPorts(boxId: string): ReportedPorts | undefined
  flush(): Promise<void>
  /** Stops the timer and writes the remaining heartbeats. */
  close(): Promise<void>
}

export type HeartbeatOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Interval between writes. Default: 5 s. */
  flushMs?: number
}

/** Three parameters per row, far below the parameter limit of either database. */
const ROWS_PER_STATEMENT = 500
/** A list has up to 220 KB. */
const PORT_LISTS_PER_STATEMENT = 50
/** The least recently updated heartbeats beyond this number are evicted; the boxes table has them. */
const MAX_BUFFERED = 20_000

export function createHeartbeats({ db, clock, log, flushMs = 5_000 }: HeartbeatOptions): Heartbeats {
  const latest = new Map<string, Heartbeat>()
  let unwrittenIds = new Set<string>()
  const unwrittenPorts = new Map<string, ReportedPorts>()
  let flushing = Promise.resolve()

  const timer = setInterval(() => {
    flush().catch((err: unknown) => log.error({ err }, 'failed to write heartbeats; will retry'))
  }, flushMs)
  timer.unref()

  function record(boxId: string, vitals: Vitals): void {
    latest.delete(boxId)
    latest.set(boxId, { vitals, at: clock.now() })
    unwrittenIds.add(boxId)
    if (latest.size <= MAX_BUFFERED) return
    const [oldestId] = latest.keys()
    if (oldestId !== undefined) latest.delete(oldestId)
  }

  function recordPorts(boxId: string, ports: readonly ListeningPort[]): void {
    unwrittenPorts.set(boxId, { ports, at: clock.now() })
  }

  function flush(): Promise<void> {
    flushing = flushing.catch(() => undefined).then(writeUnwritten)
    return flushing
  }

  async function writeUnwritten(): Promise<void> {
    await writeHeartbeats()
    await writePorts()
  }

  async function writePorts(): Promise<void> {
    const batch = [...unwrittenPorts]
    for (let offset = 0; offset < batch.length; offset += PORT_LISTS_PER_STATEMENT) {
      const part = batch.slice(offset, offset + PORT_LISTS_PER_STATEMENT)
      await transaction(
        db,
        (trx) =>
          updatePorts(
            trx,
            part.map(([id, { ports }]) => ({ id, ports })),
          ),
        { notifiesLocally: true },
      )
      for (const [boxId, written] of part)
        if (unwrittenPorts.get(boxId) === written) unwrittenPorts.delete(boxId)
    }
  }

  async function writeHeartbeats(): Promise<void> {
    if (unwrittenIds.size === 0) return
    const batch = unwrittenIds
    unwrittenIds = new Set()
    try {
      const rows = [...batch].flatMap((id) => {
        const heartbeat = latest.get(id)
        return heartbeat ? [{ id, ...heartbeat }] : []
      })
      await transaction(
        db,
        async (trx) => {
          for (let offset = 0; offset < rows.length; offset += ROWS_PER_STATEMENT)
            await updateVitals(trx, rows.slice(offset, offset + ROWS_PER_STATEMENT))
        },
        { notifiesLocally: true },
      )
    } catch (error) {
      for (const id of batch) unwrittenIds.add(id)
      throw error
    }
  }

  return {
    record,
    latest: (boxId) => latest.get(boxId),
    recordPorts,
    latestPorts: (boxId) => unwrittenPorts.get(boxId),
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}
