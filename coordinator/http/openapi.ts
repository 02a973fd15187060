// Creates the OpenAPI document from the route tables and schemas that the server itself uses.

import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { clientMessageSchema, serverMessageSchema } from '../../shared/api/attach.ts'
import { auditDeliverySchema } from '../../shared/api/audit-sink.ts'
import { feedMessageSchema } from '../../shared/api/feed.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { API_VERSION } from '../../shared/version.ts'
import type { Host } from './errors.ts'
import { createErrorResponses } from './openapi-errors.ts'
import { CONTROL_PREFIX, EDGE_BASE, EDGE_PREFIX } from './prefixes.ts'
import type { Route } from './route.ts'

export type ApiTables = { control: readonly Route[]; edge: readonly Route[]; publicUrl: string }

const DESCRIPTION = `Manages boxes, and runs commands and transfers files on them.

Fields and routes are added without notice: ignore unknown fields of responses. Error codes are stable. A route of the control plane refuses a body with an unknown field, so that a mistyped name has no other effect.

HEAD is supported wherever GET is, except for WebSockets, and has the same response without the body. Another method on a path of this document gets 405 \`method_not_allowed\` with the header \`Allow\`. A request whose headers are not valid HTTP gets 400 or 431, before its path is known.

A WebSocket of a box carries two kinds of messages. A binary message is one channel byte and 1 to 65536 raw bytes: 0 is stdin, sent by the client; 1 is stdout and 2 is stderr, sent by the server. A text message is a JSON object: \`AttachServerMessage\` or \`AttachClientMessage\`. The server sends at most 4 MiB of output beyond the last \`ack\` of the client. The client sends at most 1 MiB of stdin beyond the last \`stdin\` message of the server.

The server closes a WebSocket with 1000 when the exchange is complete, 1008 for an invalid message, 1011 for a failure of the server or the box, 1012 when the coordinator is stopping, 1013 when the client reads too slowly, 3000 when the credential is no longer valid (revoked or expired), and 3003 when it may no longer use the connection. With 3000 and 3003, the reason of the close frame is the error code. The server selects the subprotocol \`boxwood\` when the client offers it. A client that cannot set headers offers its ticket as \`boxwood.ticket.dct_…\` beside it.

A revocation applies to open requests too: event streams end with the event \`error\`, WebSockets of a box with the message \`error\`, and other requests with the error response or, once the response has started, by closing the connection.

Deliberately not provided:
- Sandboxes: their routes respond with 404.
- \`githubLogin\` and the \`onboarding*\` fields of the account are always null.`

/** The order of the groups of the control plane in the API reference. Other groups follow. */
const GROUPS = [
  'Sign-in',
  'Account',
  'API keys',
  'Boxes',
  'Machines',
  'Agents',
  'Command history',
  'Snapshots',
  'Images',
  'Environments',
  'Operations',
  'Feed',
  'Members',
  'Team',
  'Billing',
  'Workspace',
  'Audit log',
  'Cloud roles',
  'Operator',
]

const BINARY = { schema: { type: 'string', format: 'binary' } } as const
const OCTET_STREAM = 'application/octet-stream'
const WEBSOCKET =
  'The connection is a WebSocket. Its messages are AttachServerMessage and AttachClientMessage, unless the route describes others.'
const EVENTS = { 'text/event-stream': { schema: { type: 'string' } } } as const
const idempotencyHeader = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/)
    .optional()
    .meta({
      description:
        'Repeating a request with the same key within 24 hours returns the first response and does nothing else.',
    }),
})

const idempotencyResponseHeader = z.object({
  'Idempotent-Replayed': z.literal('true').optional().meta({ description: 'on a repeated response' }),
})
function createSuccessResponses(route: Route): ZodOpenApiResponsesObject {
  const { responses, otherStatuses = {}, isEventStream, contentTypes = [OCTET_STREAM] } = route
  const toBinary = (types: readonly string[]) => Object.fromEntries(types.map((type) => [type, BINARY]))
  const headers = route.idempotent ? idempotencyResponseHeader : route.responseHeaders
  const createContent = (status: string, schema: z.ZodType | null) => {
    if (schema !== null)
      return { content: { 'application/json': { schema }, ...toBinary(route.otherContentTypes ?? []) } }
    if (status === '204' || status === '101') return {}
    return {
      content: isEventStream ? EVENTS : toBinary(contentTypes),
    }
  }
  const successes = Object.entries(responses).map(
    ([status, schema]) =>
      [
        status,
        {
          description: status === '101' ? WEBSOCKET : 'Success',
          ...createContent(status, schema),
          ...(headers && { headers }),
        },
      ] as const,
  )
  const others = Object.entries(otherStatuses).map(
    ([status, description]) =>
      [
        status,
        {
          description,
          ...(status === '304' ? {} : createContent(status, Object.values(responses)[0] ?? null)),
          ...(headers && { headers }),
        },
      ] as const,
  )
  return Object.fromEntries([...successes, ...others])
}

function createRequestBody(route: Route): Pick<ZodOpenApiOperationObject, 'requestBody'> {
  if (route.rawBody) return { requestBody: { content: { [OCTET_STREAM]: BINARY }, required: true } }
  const body = route.request?.body
  if (!body) return {}
  // A request without a body is treated as an empty object.
  const required = !body.safeParse({}).success
  return { requestBody: { content: { 'application/json': { schema: body } }, required } }
}

const API_KEY = { apiKey: [] }
const SESSION = { session: [] }
const TICKET = { ticket: [] }

/** The alternatives that the route accepts. Empty: no credential is needed. */
function listCredentials({ access }: Route, host: Host): Record<string, string[]>[] {
  if (access.credential === 'none') return []
  if (access.credential === 'session') return [SESSION]
  if (access.credential === 'operator') return [API_KEY, SESSION]
  return [API_KEY, ...(host === 'control' ? [SESSION] : []), ...(access.acceptsTickets ? [TICKET] : [])]
}

function createOperation(route: Route, host: Host): ZodOpenApiOperationObject {
  const { params, query } = route.request ?? {}
  const header = route.idempotent ? idempotencyHeader : route.requestHeaders
  return {
    ...(route.id === undefined ? {} : { operationId: route.id }),
    ...(route.tag === undefined ? {} : { tags: [route.tag] }),
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: listCredentials(route, host),
    requestParams: {
      ...(params instanceof z.ZodObject ? { path: params } : {}),
      ...(query instanceof z.ZodObject ? { query } : {}),
      ...(header ? { header } : {}),
    },
    ...createRequestBody(route),
    responses: { ...createSuccessResponses(route), ...createErrorResponses(route, host) },
  }
}

/** The request that the coordinator sends to the endpoint of PUT /audit/sink. */
const AUDIT_DELIVERY: ZodOpenApiOperationObject = {
  operationId: 'audit.receiveDelivery',
  tags: ['Audit log'],
  summary: 'Audit events for the endpoint of PUT /audit/sink',
  security: [],
  requestParams: {
    header: z.object({
      'webhook-id': z.string().meta({ description: 'identifies the batch' }),
      'webhook-timestamp': z.string().meta({ description: 'epoch seconds' }),
      'webhook-signature': z.string().meta({ description: 'see PUT /audit/sink' }),
    }),
  },
  requestBody: { content: { 'application/json': { schema: auditDeliverySchema } }, required: true },
  responses: {
    '2XX': { description: 'The events are stored. Any other response repeats the request later.' },
  },
}

/** In the order of the groups, and in a group by the path, so that a resource precedes its parts. */
function sortRoutes(routes: readonly Route[]): Route[] {
  const getPosition = ({ tag }: Route) => {
    const position = GROUPS.indexOf(tag ?? '')
    return position === -1 ? GROUPS.length : position
  }
  return routes.toSorted(
    (a, b) => getPosition(a) - getPosition(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0),
  )
}

/** Fields are added to responses without notice. A schema of zod allows only known fields in its output. */
const openResponses: ZodOpenApiOverride = ({ jsonSchema, io }) => {
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
}

/** A reference with a description repeats this keyword of its schema, also of one that openResponses() has changed. */
function removeRepeatedKeywords(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if ('$ref' in value && 'additionalProperties' in value) delete value.additionalProperties
  for (const child of Object.values(value)) removeRepeatedKeywords(child)
}

/** OpenAPI 3.1. */
export function createOpenApiDocument({
  control,
  edge,
  publicUrl,
}: ApiTables): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  const addRoutes = (routes: readonly Route[], host: Host, prefix: string) => {
    for (const route of routes) {
      const path = `${prefix}${route.path}`.replace(/:(\w+)/g, '{$1}')
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: createOperation(route, host) }
    }
  }
  addRoutes(sortRoutes(control), 'control', CONTROL_PREFIX)
  addRoutes(edge, 'edge', EDGE_PREFIX + EDGE_BASE)
  const document = createDocument(
    {
      openapi: '3.1.0',
      info: { title: 'Boxwood', version: API_VERSION, description: DESCRIPTION },
      servers: [{ url: publicUrl }],
      security: [API_KEY],
      components: {
        schemas: {
          AttachServerMessage: serverMessageSchema,
          AttachClientMessage: clientMessageSchema,
          FeedMessage: feedMessageSchema,
        },
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer', description: 'An API key, which starts with dcp_' },
          session: {
            type: 'apiKey',
            in: 'cookie',
            name: SESSION_COOKIE,
            description:
              'A dashboard session, which a sign-in starts. Pages of other origins cannot send requests with it.',
          },
          ticket: {
            type: 'http',
            scheme: 'bearer',
            description: 'A ticket for one box, which starts with dct_, from POST /boxes/{id}/tickets',
          },
        },
      },
      paths,
      webhooks: { auditDelivery: { post: AUDIT_DELIVERY } },
    },
    { override: openResponses },
  )
  removeRepeatedKeywords(document)
  return document
}
