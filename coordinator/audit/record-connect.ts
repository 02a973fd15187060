// Records that a terminal (spec §2.7b) or a port was opened, for the edge, which does not use the database.
import type { Clock } from '../../shared/clock.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { recordAuditEvent } from './service.ts'

export type RecordConnect = (actor: Actor, boxId: string, session: string) => Promise<void>
export type RecordForward = (actor: Actor, boxId: string, port: number) => Promise<void>

type Options = { db: Db; clock: Clock }

export const createConnectRecorder =
  ({ db, clock }: Options): RecordConnect =>
  (actor, boxId, session) =>
    transaction(db, async (trx) =>
      recordAuditEvent(trx, { kind: 'box.connect', actor, boxId, detail: { session }, at: clock.now() }),
    )

/** A browser opens dozens of connections: it records one an hour for each credential, box and port. */
export function createForwardRecorder({ db, clock }: Options): RecordForward {
  const events = createTokenBuckets(clock, { capacity: 1, perSecond: 1 / 3600 })
  return async (actor, boxId, port) => {
    if (events.take(`${actor.credential.id} ${boxId} ${port}`) > 0) return
    await transaction(db, async (trx) =>
      recordAuditEvent(trx, { kind: 'box.forward', actor, boxId, detail: { port }, at: clock.now() }),
    )
  }
}
