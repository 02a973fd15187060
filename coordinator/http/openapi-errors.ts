// Lists the error responses of a route for the OpenAPI document, with what each code means on the route.

import { z } from 'zod'
import type { ZodOpenApiResponsesObject } from 'zod-openapi'
import { bareErrorSchema, controlErrorSchema, edgeErrorSchema } from '../../shared/api/common.ts'
import { ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { type Access, type AllowedRoles, describeCredential, NO_MONITOR_TICKETS } from './access.ts'
import { CROSS_ORIGIN } from './cross-origin.ts'
import { getGeneralCode, type Host } from './errors.ts'
import type { Route } from './route.ts'
import { ENCODING_RULE } from './url-encoding.ts'

const ERROR_SHAPES = { control: controlErrorSchema, edge: edgeErrorSchema } as const
const retryHeader = z.object({
  'Retry-After': z.string().optional().meta({ description: 'seconds until another request is accepted' }),
})
/** Errors after which a repeated request may succeed. */
const RETRY_CODES: readonly ErrorCode[] = [
  'rate_limited',
  'idempotency_in_progress',
  'control_plane_unavailable',
]

function getRoles(access: Access): AllowedRoles {
  if (access.credential === 'none') return 'any'
  return access.credential === 'operator' ? 'owner' : access.roles
}

/** Why the route responds with not_allowed, apart from its handler. */
function listNotAllowedReasons({ access }: Route): string[] {
  return [
    ...(getRoles(access) === 'any' ? [] : [ERRORS.not_allowed[1]]),
    ...(access.credential === 'key' && access.forbidsMonitorTickets ? [NO_MONITOR_TICKETS] : []),
    CROSS_ORIGIN,
  ]
}

function listAccessErrors(route: Route): ErrorCode[] {
  const { access } = route
  if (access.credential === 'none') return ['not_allowed']
  const roles: ErrorCode[] = getRoles(access) === 'owner' ? ['not_owner'] : []
  // The credential may have too many connections.
  const common: ErrorCode[] = ['unauthorized', 'token_expired', 'not_allowed', 'rate_limited', ...roles]
  if (access.credential !== 'key') return [...common, 'verification_required']
  return [
    ...common,
    ...(access.acceptsUnverified ? [] : (['verification_required'] as const)),
    ...(access.area !== null || access.scope === 'workspace' ? (['key_access_denied'] as const) : []),
  ]
}

/** Returns every error code of the route: its own, and those that follow from its definition. */
function listErrorCodes(route: Route, host: Host): ErrorCode[] {
  const { request, fieldErrorCodes = {}, bodyErrorCode, idempotent, errors } = route
  const implied: ErrorCode[] = [
    ...listAccessErrors(route),
    'internal_error',
    'control_plane_unavailable',
    ...(host === 'control' ? (['cli_update_required'] as const) : []),
    ...(request?.params ? (['not_found'] as const) : []),
    getGeneralCode(host),
    ...(route.method !== 'GET' && !route.rawBody ? (['request_timeout'] as const) : []),
    ...(host === 'edge' ? (['invalid_path'] as const) : []),
    ...(idempotent
      ? (['invalid_idempotency_key', 'idempotency_in_progress', 'idempotency_key_reused'] as const)
      : []),
  ]
  const codes = [
    ...implied,
    ...Object.values(fieldErrorCodes),
    ...(bodyErrorCode ? [bodyErrorCode] : []),
    ...(errors ?? []),
  ]
  return [...new Set(codes.map((code) => route.bareErrors?.[code] ?? code))]
}

/** The codes that only a deployment with billing sends. */
const BILLING_CODES: readonly ErrorCode[] = [
  'insufficient_balance',
  'tier_unavailable',
  'box_limit',
  'wake_rejected',
  'workspace_held',
  'share_links_need_payment',
]
const WITH_BILLING = 'Only sent where billing is on.'

/** @returns what the code means on this route */
function describeError(route: Route, host: Host, code: ErrorCode): string {
  const { access, fieldErrorCodes = {}, errors = [], errorDescriptions = {} } = route
  const own = errorDescriptions[code]
  const text = ERRORS[code][1]
  if (code === 'not_allowed') {
    const isOfHandler = errors.includes(code) && own === undefined
    return [
      ...(own === undefined ? [] : [own]),
      ...(isOfHandler ? [text] : []),
      ...listNotAllowedReasons(route),
    ]
      .filter((reason, i, reasons) => reasons.indexOf(reason) === i)
      .join(' Or: ')
  }
  if (own !== undefined) return own
  if (code === 'unauthorized') return describeCredential(access) ?? text
  const isOfRoute = errors.includes(code) || Object.values(fieldErrorCodes).includes(code)
  if (code === 'invalid_path' && host === 'edge' && !isOfRoute) return ENCODING_RULE
  return BILLING_CODES.includes(code) ? `${text} ${WITH_BILLING}` : text
}

/** The error responses of a route for the OpenAPI document, by status. */
export function createErrorResponses(route: Route, host: Host): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(listErrorCodes(route, host), (code) => ERRORS[code][0])
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [
        String(status),
        {
          description: codes.map((code) => `\`${code}\`: ${describeError(route, host, code)}`).join('\n\n'),
          content: {
            'application/json': { schema: route.bareErrors ? bareErrorSchema : ERROR_SHAPES[host] },
          },
          'x-error-codes': codes,
          ...(codes.some((code) => RETRY_CODES.includes(code)) && { headers: retryHeader }),
        },
      ]),
  )
}
