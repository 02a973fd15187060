// Creates the OpenAPI document from the route tables and schemas that the server itself uses.

import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { auditDeliverySchema } from '../../shared/api/audit-sink.ts'
import type { ErrorCode } from '../../shared/errors.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { API_VERSION } from '../../shared/version.ts'
import type { Host } from './errors.ts'
import {
  createErrorResponses,
  describeCommonErrors,
  type ErrorResponses,
  type HostRoute,
  listCommonTexts,
} from './openapi-errors.ts'
import { createResponsePool, type ResponsePool, toPascalCase } from './openapi-responses.ts'
import { addExamples } from './openapi-schema-examples.ts'
import { TAGS } from './openapi-tags.ts'
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

const BINARY = { schema: { type: 'string', format: 'binary' } } as const
const OCTET_STREAM = 'application/octet-stream'
const WEBSOCKET = 'The connection is a WebSocket. A text message is a JSON object with this schema.'
const BINARY_WEBSOCKET = 'The connection is a WebSocket with binary messages.'
const EVENTS = { 'text/event-stream': { schema: { type: 'string' } } } as const
const idempotencyHeader = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/)
    .optional()
    .meta({
      description:
        'Repeating a request with the same key within 24 hours returns the first response and does nothing else.',
      param: { id: 'Idempotency-Key' },
    }),
})

const idempotencyResponseHeader = z.object({
  'Idempotent-Replayed': z
    .literal('true')
    .optional()
    .meta({ description: 'on a repeated response', header: { id: 'Idempotent-Replayed' } }),
})

/** The name of a response that several routes share. */
function nameSuccess(route: Route, schema: z.ZodType | null): string {
  if (route.isWebSocket) return schema === null ? 'BinaryWebSocket' : 'WebSocket'
  if (route.isEventStream) return 'EventStream'
  const id = schema?.meta()?.id
  const fields = schema instanceof z.ZodObject ? Object.keys(schema.shape) : ['bytes']
  return `${id ?? fields.map(toPascalCase).join('')}${route.idempotent ? 'Idempotent' : ''}Response`
}

/** Equal schemas of zod are objects of their own: only routes with the same schema share a response. */
const schemaNumbers = new WeakMap<z.ZodType, number>()
let lastSchemaNumber = 0
function numberSchema(schema: z.ZodType): number {
  const number = schemaNumbers.get(schema) ?? ++lastSchemaNumber
  schemaNumbers.set(schema, number)
  return number
}

function createSuccessResponses(route: Route, pool: ResponsePool): ZodOpenApiResponsesObject {
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
  const successes = Object.entries(responses).map(([status, schema]) => {
    const response = {
      description: status !== '101' ? 'OK' : schema === null ? BINARY_WEBSOCKET : WEBSOCKET,
      ...createContent(status, schema),
      ...(headers && { headers }),
    }
    if (status === '204') return [status, response] as const
    const key = [
      schema === null ? status : '',
      ...[schema, headers].map((part) => part && numberSchema(part)),
    ]
    const content = [isEventStream, route.otherContentTypes, route.contentTypes]
    return [
      status,
      pool.add(JSON.stringify([...key, ...content]), route, () => ({
        name: nameSuccess(route, schema),
        response,
      })),
    ] as const
  })
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
const DEFAULT_SECURITY = [API_KEY, SESSION]

/** The alternatives that the route accepts. Empty: no credential is needed. */
function listCredentials({ access }: Route, host: Host): Record<string, string[]>[] {
  if (access.credential === 'none') return []
  if (access.credential === 'session') return [SESSION]
  if (access.credential === 'operator') return [API_KEY, SESSION]
  return [API_KEY, ...(host === 'control' ? [SESSION] : []), ...(access.acceptsTickets ? [TICKET] : [])]
}

function createOperation(
  { route, host }: HostRoute,
  pool: ResponsePool,
  errors: ErrorResponses,
): ZodOpenApiOperationObject {
  const { params, query } = route.request ?? {}
  const security = listCredentials(route, host)
  const header = route.idempotent ? idempotencyHeader : route.requestHeaders
  return {
    ...(route.id === undefined ? {} : { operationId: route.id }),
    ...(route.tag === undefined ? {} : { tags: [route.tag] }),
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...(isDeepStrictEqual(security, DEFAULT_SECURITY) ? {} : { security }),
    requestParams: {
      ...(params instanceof z.ZodObject ? { path: params } : {}),
      ...(query instanceof z.ZodObject ? { query } : {}),
      ...(header ? { header } : {}),
    },
    ...createRequestBody(route),
    responses: { ...createSuccessResponses(route, pool), ...errors({ route, host }) },
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
  const getPosition = ({ tag }: Route) => TAGS.findIndex(({ name }) => name === tag)
  return routes.toSorted(
    (a, b) => getPosition(a) - getPosition(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0),
  )
}

/** Fields are added to responses without notice. A schema of zod allows only known fields in its output. */
const overrideSchema: ZodOpenApiOverride = ({ jsonSchema, io }) => {
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
  // Every integer of JSON that programs read exactly is in this range.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/**
 * A reference with a description repeats a keyword of its schema, also of one that overrideSchema() has changed. The schema of a
 * parameter or a header repeats its description.
 */
function removeRepeatedKeywords(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if ('$ref' in value && 'additionalProperties' in value) delete value.additionalProperties
  if ('schema' in value && 'description' in value) {
    const schema = value.schema as { description?: unknown }
    if (schema.description === value.description) delete schema.description
  }
  for (const child of Object.values(value)) removeRepeatedKeywords(child)
}

/** OpenAPI 3.1. */
export function createOpenApiDocument({
  control,
  edge,
  publicUrl,
}: ApiTables): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  const routes: HostRoute[] = [
    ...sortRoutes(control).map((route) => ({ route, host: 'control' as const })),
    ...sortRoutes(edge).map((route) => ({ route, host: 'edge' as const })),
  ]
  const texts = listCommonTexts(routes)
  const undescribed = new Set<ErrorCode>()
  const pool = createResponsePool()
  const errors = createErrorResponses(pool, texts, undescribed)
  for (const { route, host } of routes) {
    const prefix = host === 'control' ? CONTROL_PREFIX : EDGE_PREFIX + EDGE_BASE
    const path = `${prefix}${route.path}`.replace(/:(\w+)/g, '{$1}')
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: createOperation({ route, host }, pool, errors),
    }
  }
  pool.assignNames()
  const document = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Boxwood',
        version: API_VERSION,
        license: { name: 'MIT', identifier: 'MIT' },
        description: `${DESCRIPTION}\n\n${describeCommonErrors(texts, undescribed)}`,
      },
      servers: [{ url: publicUrl }],
      security: DEFAULT_SECURITY,
      tags: [...TAGS],
      components: {
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
    { override: overrideSchema },
  )
  removeRepeatedKeywords(document)
  addExamples(document)
  return document
}
