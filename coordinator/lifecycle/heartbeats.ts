// Heartbeats: kept in memory, each box's last one only, and written for all boxes together now and then.
import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'

export type Heartbeat = { vitals: Vitals; at: number }

export type Heartbeats = {
  /** Received now: the clock of a box is not trusted. */
  record(boxId: string, vitals: Vitals): void
  /** The box's last one, if this coordinator has got one. */
  latest(boxId: string): Heartbeat | undefined
  flush(): Promise<void>
  /** Writes what is not written yet, and ends. */
  close(): Promise<void>
}

export type HeartbeatOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Between two writes; 5 s unless told. */
  flushMs?: number
}

/** Rows a statement: three parameters each, far below what either database takes. */
const ROWS_AT_ONCE = 500
/** The last ones of boxes beyond these are let go of, oldest first: the row has them. */
const KEPT = 20_000

export function createHeartbeats({ db, clock, log, flushMs = 5_000 }: HeartbeatOptions): Heartbeats {
  const last = new Map<string, Heartbeat>()
  let unwritten = new Set<string>()
  let flushing = Promise.resolve()

  const timer = setInterval(() => {
    flush().catch((err: unknown) => log.error({ err }, 'heartbeats could not be written; they are kept'))
  }, flushMs)
  timer.unref()

  function record(boxId: string, vitals: Vitals): void {
    last.delete(boxId)
    last.set(boxId, { vitals, at: clock.now() })
    unwritten.add(boxId)
    if (last.size <= KEPT) return
    const [oldest] = last.keys()
    if (oldest !== undefined) last.delete(oldest)
  }

  function flush(): Promise<void> {
    flushing = flushing.catch(() => undefined).then(write)
    return flushing
  }

  async function write(): Promise<void> {
    if (unwritten.size === 0) return
    const batch = unwritten
    unwritten = new Set()
    try {
      const rows = [...batch].flatMap((id) => {
        const heartbeat = last.get(id)
        return heartbeat ? [{ id, ...heartbeat }] : []
      })
      await transaction(db, async (trx) => {
        for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
          const values = rows
            .slice(from, from + ROWS_AT_ONCE)
            .map(({ id, vitals, at }) => sql`(${id}, ${JSON.stringify(vitals)}, cast(${at} as bigint))`)
          // Both databases call the columns of a bare list of values column1, column2, column3.
          await sql`update boxes set vitals = v.column2, last_heartbeat_at = v.column3
            from (values ${sql.join(values)}) as v where boxes.id = v.column1`.execute(trx)
        }
      })
    } catch (error) {
      for (const id of batch) unwritten.add(id)
      throw error
    }
  }

  return {
    record,
    latest: (boxId) => last.get(boxId),
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}
