// The pages of the dashboard at /, /boxes/* and /workspace/*, and their files in /dashboard/.
import { randomBytes } from 'node:crypto'
import { negotiate } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../shared/errors.ts'
import type { PublicRoute } from '../public-routes.ts'
import { getPath, UNKNOWN_ROUTE } from '../register-routes.ts'
import type { Dashboard, DashboardFiles } from './files.ts'
import { createFailurePage, createShell, formatPolicy, getBase } from './shell.ts'

const PAGE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}
/** A page of another origin neither includes nor frames the files. */
const FILE_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
const NONCE_BYTES = 16

export const acceptsHtml = ({ headers }: FastifyRequest): boolean =>
  /\btext\/html\b/.test(headers.accept ?? '')

/**
 * Sends the document of the dashboard. Without its files, the response is a page with the reason.
 * @param chooseScript returns the file that the document runs; null: there is no such page
 */
export async function sendDashboard(
  request: FastifyRequest,
  reply: FastifyReply,
  dashboard: Dashboard,
  chooseScript: (files: DashboardFiles) => string | null = ({ script }) => script,
): Promise<unknown> {
  const base = getBase(getPath(request))
  if (base === null) throw new ApiError('not_found', UNKNOWN_ROUTE)
  const nonce = randomBytes(NONCE_BYTES).toString('base64url')
  const policy = formatPolicy(nonce)
  reply.headers({ ...PAGE_HEADERS, 'cache-control': 'no-cache' })
  let files: DashboardFiles
  try {
    files = await dashboard.get()
  } catch (error) {
    return reply
      .code(500)
      .headers({ 'content-security-policy': policy, 'cache-control': 'no-store' })
      .type('text/html; charset=utf-8')
      .send(createFailurePage(base, error instanceof Error ? error.message : String(error)))
  }
  const script = chooseScript(files)
  if (script === null) throw new ApiError('not_found', UNKNOWN_ROUTE)
  // The nonce is not part of the ETag: a client that has the document also has the policy with its nonce.
  const etag = `W/"${files.buildId}"`
  reply.header('etag', etag)
  const known = request.headers['if-none-match']?.split(',').map((value) => value.trim())
  if (known?.includes(etag)) return reply.code(304).send()
  return reply
    .header('content-security-policy', policy)
    .type('text/html; charset=utf-8')
    .send(createShell({ files, script, base, nonce }))
}

/** Other clients get 404 as for any unknown path. */
function browserRoute(path: string, send: PublicRoute['handler']): PublicRoute {
  return {
    path,
    async handler(request, reply) {
      if (!acceptsHtml(request)) throw new ApiError('not_found', UNKNOWN_ROUTE)
      return send(request, reply.header('vary', 'accept'))
    },
  }
}

const pageRoute = (path: string, dashboard: Dashboard): PublicRoute =>
  browserRoute(path, (request, reply) => sendDashboard(request, reply, dashboard))

/** For an address that was cut off by hand. */
const redirectRoute = (path: string, target: string): PublicRoute =>
  browserRoute(path, async (_request, reply) => reply.redirect(target, 302))

export const dashboardRoutes = (dashboard: Dashboard): PublicRoute[] => [
  redirectRoute('/boxes', './'),
  redirectRoute('/workspace', 'workspace/settings'),
  redirectRoute('/workspace/', 'settings'),
  pageRoute('/boxes/*', dashboard),
  pageRoute('/workspace/*', dashboard),
  browserRoute('/design', (request, reply) =>
    sendDashboard(request, reply, dashboard, ({ design }) => design),
  ),
  {
    // A page compares this with its own build, to notice that the coordinator has a newer one.
    path: '/dashboard/build.json',
    async handler(_request, reply) {
      const { buildId } = await dashboard.get()
      return reply.headers({ ...FILE_HEADERS, 'cache-control': 'no-store' }).send({ buildId })
    },
  },
  {
    path: '/dashboard/:file',
    isCompressed: true,
    async handler(request, reply) {
      const { byName } = await dashboard.get()
      const file = byName.get((request.params as { file: string }).file)
      if (file === undefined)
        throw new ApiError(
          'not_found',
          'This file is not part of the dashboard of this coordinator. Load the page again.',
          { headers: { 'cache-control': 'no-store' } },
        )
      reply
        .headers({
          ...FILE_HEADERS,
          'cache-control': 'public, max-age=31536000, immutable',
          vary: 'accept-encoding',
        })
        .type(file.type)
      const encoding = negotiate(request.headers['accept-encoding'] ?? '', ['br', 'gzip', 'identity'])
      if (encoding !== 'br' && encoding !== 'gzip') return reply.send(file.bytes)
      return reply.header('content-encoding', encoding).send(file[encoding])
    },
  },
]
