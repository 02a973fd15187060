// The requests on the audit log (spec §4.12).
import type {
  AuditChainPage,
  AuditChainQuery,
  AuditList,
  AuditQuery,
  AuditReport,
} from '../../shared/api/audit.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { CSV_HEADER, formatCsv } from './csv.ts'
import { createEventLimiter } from './event-limiter.ts'
import { presentChainEvent, presentEvent } from './present.ts'
import { createEventReader, type EventFilter, type ReadPage } from './read-events.ts'
import { type AuditDetail, type AuditEvent, recordAuditEvent } from './service.ts'
import { EMPTY_HEAD, findHead, listChain } from './store.ts'

export type AuditLog = {
  /** One page, newest first. Throws invalid_time unless `since` is before `until`. */
  list(actor: Actor, query: AuditQuery): Promise<AuditList>
  /**
   * Records the export, and returns the text of the file, newest event first. The events are read while the text is consumed.
   * Throws like list(), and rate_limited.
   */
  exportCsv(actor: Actor, query: AuditQuery): Promise<AsyncIterable<string>>
  /** One page of the hash chain, oldest first. */
  readChain(actor: Actor, query: AuditChainQuery): Promise<AuditChainPage>
  /** Records what a client reports. Throws not_found for a box that is deleted, or that the actor may not see, and rate_limited. */
  report(actor: Actor, report: AuditReport): Promise<{ id: number }>
}

export type AuditLogOptions = { db: Db; clock: Clock; boxes: Pick<BoxFinder, 'lockLive'> }

export function createAuditLog({ db, clock, boxes }: AuditLogOptions): AuditLog {
  const limitEvents = createEventLimiter(LIMITS.auditEventsPerSecond)

  /** Returns the id of the event. `check` runs in the same transaction. */
  async function record(
    event: Omit<AuditEvent, 'at'>,
    check?: Parameters<typeof transaction>[1],
  ): Promise<number> {
    let id = 0
    await transaction(db, async (trx, onCommit) => {
      await check?.(trx, onCommit)
      recordAuditEvent(trx, { ...event, at: clock.now() }, (no) => {
        id = no
      })
    })
    return id
  }

  return {
    async list(actor, query) {
      const readPage = await createEventReader(db, toFilter(actor, query))
      const { rows, nextBefore } = await readPage(query.before, query.limit ?? LIMITS.auditPage.default)
      return { events: rows.map(presentEvent), nextBefore }
    },

    async exportCsv(actor, query) {
      const filter = toFilter(actor, query)
      await limitEvents(actor)
      const id = await record({ kind: 'audit.export', actor, boxId: null, detail: describeExport(query) })
      const readPage = await createEventReader(db, filter)
      const range = {
        // The export does not contain its own event.
        before: Math.min(id, query.before ?? id),
        limit: query.limit ?? LIMITS.auditCsvRows,
      }
      return generateCsv(readPage, range)
    },

    async readChain({ workspaceId }, { after = 0, limit = LIMITS.auditPage.max }) {
      const rows = await listChain(db, workspaceId, after, limit)
      // Read after the events: no event is newer than the head, and deleted events are left out below.
      const head = (await findHead(db, workspaceId)) ?? EMPTY_HEAD
      const start = { id: head.pruned_no, hash: head.pruned_hash }
      const events = rows.filter(({ no }) => no > start.id).map(presentChainEvent)
      const last = events.at(-1)?.id ?? Math.max(after, start.id)
      return {
        workspaceId,
        start,
        head: { id: head.no, hash: head.hash, at: head.no === 0 ? null : toTimestamp(head.at) },
        events,
        next: last < head.no ? last : null,
      }
    },

    async report(actor, { kind, boxId, detail = {} }) {
      await limitEvents(actor)
      const event = { kind, actor, boxId, detail, origin: 'client' as const }
      return {
        id: await record(event, async (trx) => await boxes.lockLive(trx, actor, boxId)),
      }
    },
  }
}

function toFilter({ workspaceId }: Actor, query: AuditQuery): EventFilter {
  const { since, until, kind: kinds, box: boxId, actor: actorUserId, origin } = query
  if (since !== undefined && until !== undefined && since >= until)
    throw new ApiError('invalid_time', 'since must be before until')
  return { workspaceId, since, until, kinds, boxId, actorUserId, origin }
}

/** The parameters of the request. */
function describeExport({ since, until, kind, ...others }: AuditQuery): AuditDetail {
  const values = {
    ...others,
    since: since === undefined ? undefined : toTimestamp(since),
    until: until === undefined ? undefined : toTimestamp(until),
    kind: kind?.join(','),
  }
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as AuditDetail
}

async function* generateCsv(
  readPage: ReadPage,
  range: { before: number; limit: number },
): AsyncGenerator<string> {
  yield CSV_HEADER
  let { before } = range
  for (let remaining = range.limit; remaining > 0; ) {
    const { rows, nextBefore } = await readPage(before, Math.min(remaining, LIMITS.auditPage.max))
    if (rows.length > 0) yield formatCsv(rows)
    if (nextBefore === null) return
    remaining -= rows.length
    before = nextBefore
  }
}
