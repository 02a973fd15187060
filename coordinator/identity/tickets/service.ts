// Creates terminal tickets (spec §5.10), and deletes expired ones.
import type { CreateTicketRequest, CreateTicketResponse } from '../../../shared/api/tickets.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { newId, newTicketSecret } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import { confirmActor } from '../confirm-actor.ts'
import { assertOpen } from '../workspaces/service.ts'
import { deleteTicketsExpiredBefore, hasTicketSince, insertTicket } from './store.ts'

export type TicketService = {
  /**
   * Creates a ticket of the session of the actor.
   * @throws ApiError not_found, workspace_closing
   */
  create(actor: Actor, boxId: string, input: CreateTicketRequest): Promise<CreateTicketResponse>
  /** Deletes the tickets that expired a day ago. Until then, requests with them get token_expired. */
  prune(signal: AbortSignal): Promise<number>
}

const RETENTION_MS = 24 * 60 * 60_000
const PRUNE_BATCH_SIZE = 500
/** Tickets of a session are recorded once in this time. */
const RECORD_INTERVAL_MS = 60 * 60_000

export function createTicketService(options: {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'lockLive'>
}): TicketService {
  const { db, clock, boxes } = options

  async function create(
    actor: Actor,
    boxId: string,
    { expiresInSeconds = LIMITS.ticketSeconds.default }: CreateTicketRequest,
  ): Promise<CreateTicketResponse> {
    const { credential, workspaceId, userId } = actor
    if (credential.type !== 'session' || userId === null) throw new Error('a ticket needs a session')
    const secret = newTicketSecret()
    const id = newId('ticket')
    const now = clock.now()
    const expiresAt = Math.min(now + expiresInSeconds * 1000, credential.expiresAt)
    await transaction(db, async (trx) => {
      await boxes.lockLive(trx, actor, boxId)
      await confirmActor(trx, actor, now)
      await assertOpen(trx, workspaceId)
      // A page creates a ticket for each tab and box.
      const isRecorded = await hasTicketSince(trx, {
        userId,
        sessionId: credential.id,
        since: now - RECORD_INTERVAL_MS,
      })
      await insertTicket(trx, {
        id,
        hash: hashSecret(secret),
        workspace_id: workspaceId,
        user_id: userId,
        session_id: credential.id,
        box_id: boxId,
        created_at: now,
        expires_at: expiresAt,
      })
      const detail = { ticketId: id, expiresAt: toTimestamp(expiresAt) }
      if (!isRecorded) recordAuditEvent(trx, { kind: 'ticket.create', actor, boxId, detail, at: now })
    })
    return { ticket: { id, boxId, expiresAt: toTimestamp(expiresAt) }, secret }
  }

  return {
    create,
    prune(signal) {
      const before = clock.now() - RETENTION_MS
      return deleteInBatches(db, (trx) => deleteTicketsExpiredBefore(trx, before, PRUNE_BATCH_SIZE), signal)
    },
  }
}
