// Counts the openings of links in memory, and writes the counts every ten seconds: a request writes nothing.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { addOpenings, type ShareOpenings } from './store.ts'

export type Openings = {
  record(shareId: string): void
  /** Writes the counts. */
  flush(): Promise<void>
  /** Stops the timer and writes the remaining counts. */
  close(): Promise<void>
}

export type OpeningsOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Interval between writes. Default: 10 s. */
  flushMs?: number
}

export function createOpenings({ db, clock, log, flushMs = 10_000 }: OpeningsOptions): Openings {
  /** Only shares in the database are counted, so their number is bounded. */
  const unwritten = new Map<string, ShareOpenings>()
  let flushing = Promise.resolve()

  const timer = setInterval(() => {
    flush().catch((err: unknown) => log.error({ err }, 'failed to write the openings of links; will retry'))
  }, flushMs)
  timer.unref()

  function flush(): Promise<void> {
    flushing = flushing.catch(() => undefined).then(writeUnwritten)
    return flushing
  }

  /** One transaction per share: no two of them wait for each other, nor for one that ends several shares. */
  async function writeUnwritten(): Promise<void> {
    for (const [id, openings] of [...unwritten]) {
      await transaction(db, (trx) => addOpenings(trx, id, openings))
      subtract(id, openings.count)
    }
  }

  /** The link may have been opened again while the count was written. */
  function subtract(id: string, written: number): void {
    const current = unwritten.get(id)
    if (current === undefined || current.count <= written) unwritten.delete(id)
    else unwritten.set(id, { ...current, count: current.count - written })
  }

  return {
    record: (id) =>
      void unwritten.set(id, { count: (unwritten.get(id)?.count ?? 0) + 1, lastAt: clock.now() }),
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}
