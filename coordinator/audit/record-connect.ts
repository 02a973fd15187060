// Records that a terminal or the desktop (spec §2.7b) or a port of a box was opened, and that a desktop was started or stopped,
// for the edge, which does not use the database.
import type { DesktopMode } from '../../shared/api/desktop.ts'
import type { Clock } from '../../shared/clock.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { recordAuditEvent } from './service.ts'

export type RecordConnect = (actor: Actor, boxId: string, session: string) => Promise<void>
export type RecordForward = (actor: Actor, boxId: string, port: number) => Promise<void>
export type RecordDesktop = (
  kind: 'box.desktop_start' | 'box.desktop_stop',
  actor: Actor,
  boxId: string,
  mode: DesktopMode,
) => Promise<void>

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

export const createDesktopRecorder =
  ({ db, clock }: Options): RecordDesktop =>
  (kind, actor, boxId, mode) =>
    transaction(db, async (trx) =>
      recordAuditEvent(trx, { kind, actor, boxId, detail: { mode }, at: clock.now() }),
    )
