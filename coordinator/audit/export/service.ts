// Configures the endpoint that receives the audit events of a workspace (spec §5.7).
import { isIP } from 'node:net'
import type { AuditSink, PutAuditSinkRequest, PutAuditSinkResponse } from '../../../shared/api/audit-sink.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isPublicAddress } from '../../base/public-address.ts'
import type { Db } from '../../db/open.ts'
import type { AuditHeadRow, AuditSinkRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { recordAuditEvent } from '../service.ts'
import { recordSinkChange } from './deliveries.ts'
import { newSigningSecret } from './signature.ts'
import { deleteSink, findHead, findSink, writeSink } from './store.ts'

export type AuditSinkService = {
  get(actor: Actor): Promise<AuditSink | null>
  /** @throws ApiError workspace_closing; bad_request for a literal address that is not public */
  put(actor: Actor, request: PutAuditSinkRequest): Promise<PutAuditSinkResponse>
  /** Idempotent. */
  remove(actor: Actor): Promise<void>
}

type Head = Pick<AuditHeadRow, 'no' | 'pruned_no'>

const present = (sink: AuditSinkRow, head: Head): AuditSink => ({
  url: sink.url,
  deliveredThrough: sink.delivered_no,
  pending: Math.max(0, head.no - Math.max(sink.delivered_no, head.pruned_no)),
  lastDeliveredAt: toTimestampOrNull(sink.last_delivered_at),
  lastError: sink.last_error,
  attempt: sink.attempt,
  nextAttemptAt: toTimestampOrNull(sink.next_attempt_at),
  updatedBy: sink.updated_by,
  updatedAt: toTimestamp(sink.updated_at),
})

function getFirstPosition(
  from: PutAuditSinkRequest['from'],
  existing: AuditSinkRow | undefined,
  head: Head,
): number {
  if (from === 'start') return head.pruned_no
  return from === 'now' || existing === undefined ? head.no : existing.delivered_no
}

export function createAuditSinkService(options: {
  db: Db
  clock: Clock
  /** Whether the endpoint may have addresses that are not public. */
  allowsPrivate: boolean
  /** Throws workspace_closing. */
  assertOpen(trx: Trx, workspaceId: string): Promise<void>
  /** Locks the workspace. Throws unauthorized or not_allowed for an actor that has lost its rights. */
  confirmActor(trx: Trx, actor: Actor, now: number): Promise<unknown>
}): AuditSinkService {
  const { db, clock, allowsPrivate, assertOpen, confirmActor } = options

  function assertAllowed({ hostname }: URL): void {
    const address = hostname.replace(/^\[(.*)\]$/, '$1')
    if (allowsPrivate || !isIP(address) || isPublicAddress(address)) return
    throw new ApiError(
      'bad_request',
      'url must have a host on the public internet, unless the operator sets BOXWOOD_AUDIT_SINK_PRIVATE=on',
    )
  }

  async function find(db: Db | Trx, workspaceId: string): Promise<AuditSink | null> {
    const sink = await findSink(db, workspaceId)
    return sink ? present(sink, await findHead(db, workspaceId)) : null
  }

  return {
    get: ({ workspaceId }) => find(db, workspaceId),

    async put(actor, { url: text, from }) {
      const { workspaceId } = actor
      const url = new URL(text)
      assertAllowed(url)
      const { sink, secret } = await transaction(db, async (trx) => {
        const now = clock.now()
        await confirmActor(trx, actor, now)
        await assertOpen(trx, workspaceId)
        const [existing, head] = [await findSink(trx, workspaceId), await findHead(trx, workspaceId)]
        const isSameUrl = existing?.url === url.href
        const secret = isSameUrl ? existing.secret : newSigningSecret()
        const sink: AuditSinkRow = {
          workspace_id: workspaceId,
          url: url.href,
          secret,
          delivered_no: getFirstPosition(from, existing, head),
          attempt: 0,
          next_attempt_at: null,
          last_error: null,
          last_delivered_at: isSameUrl ? existing.last_delivered_at : null,
          updated_by: actor.userId,
          updated_at: now,
        }
        await writeSink(trx, sink)
        const detail = { host: url.host, ...(from && { from }) }
        recordAuditEvent(trx, { kind: 'audit_sink.update', actor, boxId: null, detail, at: now })
        recordSinkChange(trx, workspaceId)
        return { sink: present(sink, head), secret: isSameUrl ? null : secret }
      })
      return { sink, secret }
    },

    remove: (actor) =>
      transaction(db, async (trx) => {
        const { workspaceId } = actor
        const now = clock.now()
        await confirmActor(trx, actor, now)
        const existing = await findSink(trx, workspaceId)
        if (existing === undefined) return
        await deleteSink(trx, workspaceId)
        const detail = { host: new URL(existing.url).host }
        recordAuditEvent(trx, {
          kind: 'audit_sink.delete' as const,
          actor,
          boxId: null,
          detail,
          at: now,
        })
        recordSinkChange(trx, workspaceId)
      }),
  }
}
