// Routes of the export of the audit log (spec §5.7, §6). Only owners with a dashboard session may use them.
import {
  auditSinkResponseSchema,
  putAuditSinkRequestSchema,
  putAuditSinkResponseSchema,
} from '../../../shared/api/audit-sink.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bySession } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { AuditSinkService } from './service.ts'

const { batchEvents, timeoutSeconds } = LIMITS.auditSink

const DELIVERIES = `The coordinator sends new events of the workspace to the endpoint, as POST requests with the JSON body \`AuditDelivery\` of up to ${batchEvents} events. It sends them in the order of their ids, one request at a time and soon after each event.

A response of 2xx within ${timeoutSeconds} seconds confirms the events. After any other response, redirects included, the coordinator sends them again, after 5 seconds at first and up to an hour later, until the endpoint confirms them. An event may arrive more than once: ignore ids that you have stored already.

Deliveries are signed as [Standard Webhooks](https://www.standardwebhooks.com) describes. \`webhook-id\` identifies the batch, \`webhook-timestamp\` is in epoch seconds. \`webhook-signature\` is \`v1,\` and the base64 of the HMAC-SHA-256 of \`{webhook-id}.{webhook-timestamp}.{body}\`, with the bytes after \`whsec_\` of the secret, decoded from base64, as the key. Verify it before you trust a delivery.

Events that the retention deletes before they are confirmed are lost: \`skippedThrough\` of the next delivery names the last of them.`

export const auditSinkRoutes = ({ auditSink }: { auditSink: AuditSinkService }): Route[] => [
  route({
    id: 'auditSink.get',
    method: 'GET',
    path: '/audit/sink',
    access: bySession('owner'),
    summary: 'Get the endpoint that receives the audit log',
    responses: { 200: auditSinkResponseSchema },
    handler: async ({ actor }) => ({ sink: await auditSink.get(actor) }),
  }),
  route({
    id: 'auditSink.set',
    method: 'PUT',
    path: '/audit/sink',
    access: bySession('owner'),
    summary: 'Deliver the audit log to an HTTPS endpoint',
    description: `Replaces the endpoint. Also sends failed deliveries again immediately.\n\n${DELIVERIES}`,
    request: { body: putAuditSinkRequestSchema },
    responses: { 200: putAuditSinkResponseSchema },
    errors: ['workspace_closing'],
    handler: ({ actor, body }) => auditSink.put(actor, body),
  }),
  route({
    id: 'auditSink.remove',
    method: 'DELETE',
    path: '/audit/sink',
    access: bySession('owner'),
    summary: 'Stop delivering the audit log',
    description: 'A request in flight is completed. No effect when no endpoint is configured.',
    responses: { 204: null },
    handler: ({ actor }) => auditSink.remove(actor),
  }),
]
