// Counts the openings of links in memory, and writes the counts every ten seconds: a request writes nothing.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { createPeriodicWriter, type PeriodicWriter } from '../base/periodic-writer.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { addOpenings, type ShareOpenings } from './store.ts'

export type Openings = PeriodicWriter & {
  record(shareId: string): void
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
    ...createPeriodicWriter({
      intervalMs: flushMs,
      write: writeUnwritten,
      log,
      subject: 'the openings of links',
    }),
  }
}
