// Lists the error responses of a route for the OpenAPI document, with what each code means on the route.

import { z } from 'zod'
import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import { bareErrorSchema, controlErrorSchema, edgeErrorSchema } from '../../shared/api/common.ts'
import { ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { type Access, type AllowedRoles, describeCredential, NO_MONITOR_TICKETS } from './access.ts'
import { CROSS_ORIGIN } from './cross-origin.ts'
import { getGeneralCode, type Host } from './errors.ts'
import { type ResponsePool, toPascalCase } from './openapi-responses.ts'
import type { Route } from './route.ts'
import { ENCODING_RULE } from './url-encoding.ts'

const ERROR_SHAPES = { control: controlErrorSchema, edge: edgeErrorSchema } as const
const retryHeader = z.object({
  'Retry-After': z
    .string()
    .optional()
    .meta({ description: 'seconds until another request is accepted', header: { id: 'Retry-After' } }),
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

/**
 * The codes that follow from the definition of a route, where they mean the same on all routes of the host. The responses with
 * no other codes are one response of the document, `default`. Each route lists 403 itself: the linter of Redocly requires a 4xx
 * status of each operation.
 */
const GENERAL_CODES: Record<Host, readonly ErrorCode[]> = {
  control: [
    'bad_request',
    'invalid_idempotency_key',
    'unauthorized',
    'token_expired',
    'not_found',
    'request_timeout',
    'idempotency_in_progress',
    'idempotency_key_reused',
    'cli_update_required',
    'rate_limited',
    'internal_error',
    'control_plane_unavailable',
  ],
  edge: [
    'invalid_request',
    'invalid_path',
    'unauthorized',
    'token_expired',
    'not_found',
    'request_timeout',
    'rate_limited',
    'internal_error',
    'box_unreachable',
    'exec_failed',
    'control_plane_unavailable',
  ],
}

/** Whether a reader of the document knows from the operation that it may send this general code. Otherwise the operation lists it. */
function followsFromDefinition({ request, access, method }: Route, code: ErrorCode): boolean {
  if (code === 'not_found') return request?.params !== undefined
  if (code === 'unauthorized' || code === 'token_expired') return access.credential !== 'none'
  return code !== 'request_timeout' || method !== 'GET'
}

const ALL_GENERAL_CODES = Object.values(GENERAL_CODES).flat()

type ErrorResponse = ZodOpenApiResponseObject & { 'x-error-codes': ErrorCode[] }

function createResponse(codes: ErrorCode[], description: string, schema: z.ZodType): ErrorResponse {
  return {
    description,
    content: { 'application/json': { schema } },
    'x-error-codes': codes,
    ...(codes.some((code) => RETRY_CODES.includes(code)) && { headers: retryHeader }),
  }
}

/** A text that fewer routes have stands with each of them. */
const MIN_COMMON_ROUTES = 3

/** The most frequent text of each code that several routes have with the same text. */
export type CommonTexts = ReadonlyMap<ErrorCode, string>

export function listCommonTexts(routes: readonly HostRoute[]): CommonTexts {
  const uses = routes.flatMap(({ route, host }) =>
    listErrorCodes(route, host).map((code) => ({ code, text: describeError(route, host, code) })),
  )
  const byCode = Map.groupBy(uses, ({ code }) => code)
  return new Map(
    [...byCode].flatMap(([code, texts]) => {
      const counts = [...Map.groupBy(texts, ({ text }) => text)].map(
        ([text, { length }]) => [text, length] as const,
      )
      const [text, count] = counts.reduce((most, next) => (next[1] > most[1] ? next : most))
      return count < MIN_COMMON_ROUTES ? [] : [[code, text] as const]
    }),
  )
}

/** The part of the text of the document about errors, for describeErrors(). */
export function describeCommonErrors(texts: CommonTexts, undescribed: ReadonlySet<ErrorCode>): string {
  const others = [...texts].filter(([code]) => undescribed.has(code)).sort(([a], [b]) => (a < b ? -1 : 1))
  return [
    'The response `default` of an operation has the errors that any request may get, also with a status that the operation lists for other errors. A code without a text has the following:',
    ...others.map(([code, text]) => `- \`${code}\`: ${text}`),
  ].join('\n')
}

/** @param codes in the order of their statuses */
function createGeneralResponse(codes: ErrorCode[], schema: z.ZodType, texts: CommonTexts): ErrorResponse {
  const lines = codes.map((code) => `${ERRORS[code][0]} \`${code}\`: ${texts.get(code) ?? ERRORS[code][1]}`)
  return createResponse(codes, lines.join('\n\n'), schema)
}

/** A longer list of common codes has no texts. */
const MAX_DESCRIBED = 3

/** The texts of the codes. Common ones are left out where the route has others with this status. */
function describeErrors(
  uses: readonly { code: ErrorCode; text: string }[],
  texts: CommonTexts,
): { description: string; undescribed: ErrorCode[] } {
  const own = uses.filter(({ code, text }) => texts.get(code) !== text)
  const described = own.length === 0 && uses.length <= MAX_DESCRIBED ? uses : own
  const others = uses.filter((use) => !described.includes(use)).map(({ code }) => code)
  const names = others.map((code) => `\`${code}\``).join(', ')
  const lines = [
    ...described.map(({ code, text }) => `\`${code}\`: ${text}`),
    ...(others.length === 0 ? [] : [`${described.length === 0 ? '' : 'Also '}${names}`]),
  ]
  return { description: lines.join('\n\n'), undescribed: others }
}

/** The codes that follow from the access of a route. The name of a response leaves them out. */
const ACCESS_CODES: readonly ErrorCode[] = [
  'unauthorized',
  'token_expired',
  'not_allowed',
  'verification_required',
  'key_access_denied',
  'not_owner',
]

/** The name of a response that several routes share. */
function nameResponse({ access }: Route, host: Host, status: number, codes: readonly ErrorCode[]): string {
  const own = codes.filter((code) => !ACCESS_CODES.includes(code))
  const ofRoute = own.filter((code) => !GENERAL_CODES[host].includes(code))
  const named = ofRoute.length === 0 ? own.slice(-1) : ofRoute
  const words = named.slice(0, 2).map(toPascalCase).join('')
  const prefix = host === 'edge' ? 'Edge' : ''
  if (status !== 401 && status !== 403) return prefix + words
  const credential = { key: '', session: 'Session', operator: 'Operator', none: 'Open' }[access.credential]
  if (status === 401) return `${prefix}${credential}Unauthorized${words}`
  const role = codes.includes('not_owner') ? 'Owner' : getRoles(access) === 'any' ? '' : 'Role'
  return `${prefix}${credential}${role}Forbidden${words}`
}

export type HostRoute = { route: Route; host: Host }

/** The error responses of a route by status. */
export type ErrorResponses = (route: HostRoute) => ZodOpenApiResponsesObject

/** @param allUndescribed gets the codes whose text is not in their response */
export function createErrorResponses(
  pool: ResponsePool,
  texts: CommonTexts,
  allUndescribed: Set<ErrorCode>,
): ErrorResponses {
  const createGeneral = (host: Host) =>
    createGeneralResponse([...GENERAL_CODES[host]], ERROR_SHAPES[host], texts)
  const general = {
    control: { ...createGeneral('control'), id: 'Error' },
    edge: { ...createGeneral('edge'), id: 'EdgeError' },
  }
  /** The routes with bare errors have other codes. */
  const createBareGeneral = (codes: ErrorCode[]) =>
    createGeneralResponse(
      codes.filter((code) => ALL_GENERAL_CODES.includes(code)).sort((a, b) => ERRORS[a][0] - ERRORS[b][0]),
      bareErrorSchema,
      texts,
    )
  return ({ route, host }) => {
    const schema = route.bareErrors ? bareErrorSchema : ERROR_SHAPES[host]
    const allCodes = listErrorCodes(route, host)
    const generalCodes = route.bareErrors ? ALL_GENERAL_CODES : GENERAL_CODES[host]
    const byStatus = Map.groupBy(allCodes, (code) => ERRORS[code][0])
    const responses = [...byStatus].map(([status, codes]) => {
      const uses = codes.map((code) => ({ code, text: describeError(route, host, code) }))
      const own = uses.filter(
        ({ code, text }) =>
          !generalCodes.includes(code) || text !== texts.get(code) || !followsFromDefinition(route, code),
      )
      if (own.length === 0) return ['default', route.bareErrors ? createBareGeneral(allCodes) : general[host]]
      const { description, undescribed } = describeErrors(own, texts)
      for (const code of undescribed) allUndescribed.add(code)
      const ownCodes = own.map(({ code }) => code)
      const response = createResponse(ownCodes, description, schema)
      const key = JSON.stringify([host, route.bareErrors !== undefined, description, ownCodes])
      return [
        String(status),
        pool.add(key, route, () => ({ name: nameResponse(route, host, status, codes), response })),
      ]
    })
    return Object.fromEntries(responses)
  }
}
