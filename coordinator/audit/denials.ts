// Records refused requests in the audit log, each kind of refusal at most once a minute.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Denial, RecordDenial } from '../http/denial.ts'
import { recordAuditEvent } from './service.ts'

export type Denials = {
  /** Never throws: a failure is logged. */
  record: RecordDenial
  /** Resolves when the events so far are written. */
  close(): Promise<void>
}

export type DenialsOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Beyond this number the oldest refusal is forgotten, and may be recorded again within its minute. Default: 10,000. */
  maxRemembered?: number
}

const INTERVAL_MS = 60_000

/**
 * A credential that has expired or been revoked counts once for all routes: its holder could otherwise add many events,
 * and no further revocation would stop that.
 */
const toKey = ({ identity, isLive, method, route, code }: Denial): string =>
  [identity.credential.id, code, ...(isLive ? [method, route] : [])].join(' ')

export function createDenials(options: DenialsOptions): Denials {
  const { db, clock, log, maxRemembered = 10_000 } = options
  /** Refusal → when it was recorded last, oldest first. */
  const recordedAt = new Map<string, number>()
  const writes = new Set<Promise<void>>()

  /** Whether the same refusal was recorded in the last minute. */
  function isRepeated(denial: Denial, now: number): boolean {
    const key = toKey(denial)
    const last = recordedAt.get(key)
    if (last !== undefined && now - last < INTERVAL_MS) return true
    recordedAt.delete(key)
    const [oldest] = recordedAt.keys()
    if (recordedAt.size >= maxRemembered && oldest !== undefined) recordedAt.delete(oldest)
    recordedAt.set(key, now)
    return false
  }

  const write = ({ identity, method, route, code, fields }: Denial, at: number): Promise<void> =>
    transaction(db, async (trx) => {
      const detail = { method, route, code, ...fields }
      recordAuditEvent(trx, { kind: 'access.denied', actor: identity, boxId: null, detail, at })
    })

  function record(denial: Denial): void {
    const now = clock.now()
    if (isRepeated(denial, now)) return
    const writing = write(denial, now)
      .catch((err: unknown) => log.error({ err, code: denial.code }, 'failed to record a refused request'))
      .finally(() => writes.delete(writing))
    writes.add(writing)
  }

  return {
    record,
    async close() {
      await Promise.all(writes)
    },
  }
}
