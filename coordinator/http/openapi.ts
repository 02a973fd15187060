// Creates the OpenAPI document from the route tables and schemas that the server itself uses.

import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'
import { controlErrorSchema, edgeErrorSchema } from '../../shared/api/common.ts'
import { ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { getRequiredAccess } from './access.ts'
import { getGeneralCode, type Host } from './errors.ts'
import { CONTROL_PREFIX, EDGE_BASE, EDGE_PREFIX } from './prefixes.ts'
import type { Route } from './route.ts'

export type ApiTables = { control: readonly Route[]; edge: readonly Route[]; publicUrl: string }

const DESCRIPTION = `Manages boxes, and runs commands and transfers files on them.

Fields and routes are added without notice: ignore unknown fields. Error codes are stable.

Every GET route also supports HEAD.

Deliberately not provided:
- Sandboxes: their routes respond with 404.
- \`githubLogin\` and the \`onboarding*\` fields of the account are always null.`

const ERROR_SHAPES = { control: controlErrorSchema, edge: edgeErrorSchema } as const
const BYTES = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } } as const
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

/** Every error code of the route: its own, and those that follow from its definition. */
export function listErrorCodes(route: Route, host: Host): ErrorCode[] {
  const { request, fieldErrorCodes = {}, idempotent, errors } = route
  const isLimited = getRequiredAccess(route) !== null || route.workspaceWide
  const implied: ErrorCode[] = [
    'unauthorized',
    'token_expired',
    'internal_error',
    'control_plane_unavailable',
    ...(host === 'control' ? (['cli_update_required'] as const) : []),
    ...(isLimited ? (['key_access_denied'] as const) : []),
    ...(request?.params ? (['not_found'] as const) : []),
    getGeneralCode(host),
    ...(host === 'edge' ? (['invalid_path'] as const) : []),
    ...(idempotent
      ? (['invalid_idempotency_key', 'idempotency_in_progress', 'idempotency_key_reused'] as const)
      : []),
  ]
  return [...new Set([...implied, ...Object.values(fieldErrorCodes), ...(errors ?? [])])]
}

function createErrorResponses(route: Route, host: Host): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(listErrorCodes(route, host), (code) => ERRORS[code][0])
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [
        String(status),
        {
          description: codes.map((code) => `\`${code}\`: ${ERRORS[code][1]}`).join('\n\n'),
          content: { 'application/json': { schema: ERROR_SHAPES[host] } },
          'x-error-codes': codes,
        },
      ]),
  )
}

function createSuccessResponses({
  responses,
  otherStatuses = {},
  isEventStream,
}: Route): ZodOpenApiResponsesObject {
  const createContent = (status: string, schema: z.ZodType | null) => {
    if (schema !== null) return { content: { 'application/json': { schema } } }
    return status === '204' ? {} : { content: isEventStream ? EVENTS : BYTES }
  }
  const successes = Object.entries(responses).map(
    ([status, schema]) => [status, { description: 'Success', ...createContent(status, schema) }] as const,
  )
  const others = Object.entries(otherStatuses).map(
    ([status, description]) =>
      [status, { description, ...(status === '304' ? {} : createContent(status, null)) }] as const,
  )
  return Object.fromEntries([...successes, ...others])
}

function createRequestBody(route: Route): Pick<ZodOpenApiOperationObject, 'requestBody'> {
  if (route.rawBody) return { requestBody: { content: BYTES, required: true } }
  const body = route.request?.body
  return body ? { requestBody: { content: { 'application/json': { schema: body } } } } : {}
}

function createOperation(route: Route, host: Host): ZodOpenApiOperationObject {
  const { params, query } = route.request ?? {}
  return {
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    requestParams: {
      ...(params instanceof z.ZodObject ? { path: params } : {}),
      ...(query instanceof z.ZodObject ? { query } : {}),
      ...(route.idempotent ? { header: idempotencyHeader } : {}),
    },
    ...createRequestBody(route),
    responses: { ...createSuccessResponses(route), ...createErrorResponses(route, host) },
  }
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
  addRoutes(control, 'control', CONTROL_PREFIX)
  addRoutes(edge, 'edge', EDGE_PREFIX + EDGE_BASE)
  return createDocument({
    openapi: '3.1.0',
    info: { title: 'Boxwood', version: '1', description: DESCRIPTION },
    servers: [{ url: publicUrl }],
    security: [{ apiKey: [] }],
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key, which starts with dcp_' },
      },
    },
    paths,
  })
}
