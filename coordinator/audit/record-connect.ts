// Records that a terminal was opened (spec §2.7b), for the edge, which does not use the database.
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { recordAuditEvent } from './service.ts'

export type RecordConnect = (actor: Actor, boxId: string, session: string) => Promise<void>

export const createConnectRecorder =
  ({ db, clock }: { db: Db; clock: Clock }): RecordConnect =>
  (actor, boxId, session) =>
    transaction(db, async (trx) =>
      recordAuditEvent(trx, { kind: 'box.connect', actor, boxId, detail: { session }, at: clock.now() }),
    )
