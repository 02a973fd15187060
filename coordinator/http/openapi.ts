// The API's description, made of the same tables and schemas that mount and validate the routes.

import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'
import { controlError, edgeError } from '../../shared/api/common.ts'
import { ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { requiredAccess } from './access.ts'
import { generalCode, type Host } from './errors.ts'
import { CONTROL_PREFIX, EDGE_BASE, EDGE_PREFIX } from './prefixes.ts'
import type { Route } from './route.ts'

export type ApiTables = { control: readonly Route[]; edge: readonly Route[]; publicUrl: string }

const ERROR_SHAPES = { control: controlError, edge: edgeError } as const
const BYTES = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } } as const
const EVENTS = { 'text/event-stream': { schema: { type: 'string' } } } as const
const idempotencyHeader = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/)
    .optional()
    .meta({ description: 'The same request with the same key within 24 hours is done once.' }),
})

/** Every code the route may refuse with: its own, and those that its place in the table implies. */
export function errorCodes(route: Route, host: Host): ErrorCode[] {
  const { request, codes, idempotent, errors } = route
  const limited = requiredAccess(route) !== null || route.workspaceWide
  const implied: ErrorCode[] = [
    'unauthorized',
    'token_expired',
    'internal_error',
    'control_plane_unavailable',
    ...(host === 'control' ? (['cli_update_required'] as const) : []),
    ...(limited ? (['key_access_denied'] as const) : []),
    ...(request?.params ? (['not_found'] as const) : []),
    ...(request?.body || request?.query ? [generalCode(host)] : []),
    ...(idempotent
      ? (['invalid_idempotency_key', 'idempotency_in_progress', 'idempotency_key_reused'] as const)
      : []),
  ]
  return [...new Set([...implied, ...Object.values(codes ?? {}), ...(errors ?? [])])]
}

function refusals(route: Route, host: Host): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(errorCodes(route, host), (code) => ERRORS[code][0])
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

function successes({ answers, events }: Route): ZodOpenApiResponsesObject {
  const content = (status: string, shape: z.ZodType | null) => {
    if (shape !== null) return { content: { 'application/json': { schema: shape } } }
    return status === '204' ? {} : { content: events ? EVENTS : BYTES }
  }
  return Object.fromEntries(
    Object.entries(answers).map(([status, shape]) => [
      status,
      { description: 'Done', ...content(status, shape) },
    ]),
  )
}

function requestBody(route: Route): Pick<ZodOpenApiOperationObject, 'requestBody'> {
  if (route.rawBody) return { requestBody: { content: BYTES, required: true } }
  const body = route.request?.body
  return body ? { requestBody: { content: { 'application/json': { schema: body } } } } : {}
}

function operation(route: Route, host: Host): ZodOpenApiOperationObject {
  const { params, query } = route.request ?? {}
  return {
    summary: route.summary,
    requestParams: {
      ...(params instanceof z.ZodObject ? { path: params } : {}),
      ...(query instanceof z.ZodObject ? { query } : {}),
      ...(route.idempotent ? { header: idempotencyHeader } : {}),
    },
    ...requestBody(route),
    responses: { ...successes(route), ...refusals(route, host) },
  }
}

/** OpenAPI 3.1. */
export function describeApi({ control, edge, publicUrl }: ApiTables): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  const add = (routes: readonly Route[], host: Host, prefix: string) => {
    for (const route of routes) {
      const path = `${prefix}${route.path}`.replace(/:(\w+)/g, '{$1}')
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, host) }
    }
  }
  add(control, 'control', CONTROL_PREFIX)
  add(edge, 'edge', EDGE_PREFIX + EDGE_BASE)
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Boxwood',
      version: '1',
      description:
        'Boxes and what is done with them. Fields and routes are added without notice; error codes are stable.',
    },
    servers: [{ url: publicUrl }],
    security: [{ apiKey: [] }],
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: dcp_…' },
      },
    },
    paths,
  })
}
