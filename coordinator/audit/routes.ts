// Routes of the audit log (spec §4.12).
import { Readable } from 'node:stream'
import {
  AUDIT_CHAIN_ERROR_CODES,
  AUDIT_QUERY_ERROR_CODES,
  auditChainPageSchema,
  auditChainQuerySchema,
  auditListSchema,
  auditQuerySchema,
  auditReportResponseSchema,
  auditReportSchema,
  describeAuditKinds,
} from '../../shared/api/audit.ts'
import { CLIENT_AUDIT_KINDS } from '../../shared/audit-kinds.ts'
import type { Clock } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import type { AuditLog } from './audit-log.ts'
import { createCsvFileName } from './csv.ts'

const read = byKey('workspace', 'read', { roles: 'not_contractor' })

const CSV_TYPE = 'text/csv'

const LIST_DESCRIPTION = `A user or box of another workspace has no events here.

With format=csv the response is a file with the columns id, at, kind, origin, actor_kind, actor_user_id, actor_token_id, box_id and detail (JSON): all matching events, newest first, at most ${LIMITS.auditCsvRows}. When the file has that many, repeat the request with \`before\` set to the last id. A cell that a spreadsheet would evaluate as a formula starts with '. The download is recorded as audit.export. rate_limited: the credential has sent more than ${LIMITS.auditEventsPerSecond.perCredential} downloads and reports in a second, or its user more than ${LIMITS.auditEventsPerSecond.perUser}.`

const CHAIN_DESCRIPTION = `For the verification that no event has been changed, removed or inserted; \`box audit verify\` does it. The hash of an event is the SHA-256 (hex) of the JSON text, without spaces, of the array [hash of the event before, workspaceId, id, at in milliseconds since the epoch, kind, origin, actorKind, actorUserId, actorTokenId, boxId, detailHash]. The hash before the first event is 64 zeros. A person who can write to the database can also compute a new chain: note head, and compare it with the event of the same id later.`

export function auditRoutes({ audit, clock }: { audit: AuditLog; clock: Clock }): Route[] {
  return [
    route({
      id: 'audit.list',
      method: 'GET',
      path: '/audit',
      access: read,
      summary: 'List the events of the audit log, newest first',
      description: `${LIST_DESCRIPTION}\n\n${describeAuditKinds()}`,
      request: { query: auditQuerySchema },
      fieldErrorCodes: AUDIT_QUERY_ERROR_CODES,
      responses: { 200: auditListSchema },
      otherContentTypes: [CSV_TYPE],
      errors: ['rate_limited'],
      async handler({ actor, query, request, reply }) {
        if (query.format !== 'csv') return audit.list(actor, query)
        // The export starts before the headers are set, because an error response must not have them.
        const text = request.method === 'HEAD' ? null : await audit.exportCsv(actor, query)
        reply
          .code(200)
          .type(`${CSV_TYPE}; charset=utf-8`)
          .header('content-disposition', `attachment; filename="${createCsvFileName(clock.now())}"`)
        return reply.send(text === null ? undefined : Readable.from(text, { objectMode: false }))
      },
    }),
    route({
      id: 'audit.listChain',
      method: 'GET',
      path: '/audit/chain',
      access: read,
      summary: 'Read the hash chain of the audit log, oldest event first',
      description: CHAIN_DESCRIPTION,
      request: { query: auditChainQuerySchema },
      fieldErrorCodes: AUDIT_CHAIN_ERROR_CODES,
      errorDescriptions: { invalid_cursor: 'after must be the next of the previous page' },
      responses: { 200: auditChainPageSchema },
      handler: ({ actor, query }) => audit.readChain(actor, query),
    }),
    route({
      id: 'audit.report',
      method: 'POST',
      path: '/audit',
      access: byKey('boxes', 'run', { acceptsTickets: true, forbidsMonitorTickets: true }),
      summary: 'Report what a client has done in a box',
      description: `Adds an event with origin client to the audit log. The coordinator does not verify that what a client reports has happened. At most ${LIMITS.auditEventsPerSecond.perCredential} reports and downloads per second and credential, and ${LIMITS.auditEventsPerSecond.perUser} per user.`,
      request: { body: auditReportSchema },
      fieldErrorCodes: { kind: 'invalid_kind' },
      responses: { 201: auditReportResponseSchema },
      errors: ['not_found', 'rate_limited'],
      errorDescriptions: {
        invalid_kind: `kind must be one of ${CLIENT_AUDIT_KINDS.join(', ')}`,
        not_found: 'There is no such box, it is being deleted, or this credential may not access it.',
      },
      handler: ({ actor, body }) => audit.report(actor, body),
    }),
  ]
}
