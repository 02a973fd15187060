// The pages for browsers: GET / describes this coordinator to a visitor and is the dashboard of a signed-in user, GET /docs is the
// API reference, GET /docs/guides/TOPIC is a guide, GET /desktop shows the desktop of a box.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { API_VERSION, VERSION } from '../../../shared/version.ts'
import { readSessionCookie } from '../auth.ts'
import type { Dashboard } from '../dashboard/files.ts'
import { acceptsHtml, dashboardRoutes, sendDashboard } from '../dashboard/routes.ts'
import { createContentHandler } from '../fixed-content.ts'
import { OPEN_REFUSED_URL } from '../large-requests.ts'
import type { PublicRoute } from '../public-routes.ts'
import { createAgentText, createLlmsText } from './agent-page.ts'
import { DESKTOP_PAGE, listNovncFiles } from './desktop-page.ts'
import { DOCS_PAGE } from './docs-page.ts'
import { guideRoutes, listGuideGroups } from './guides.ts'
import { createHomePage, createHomeText } from './home-page.ts'

const ASSETS = join(import.meta.dirname, 'assets')
/** The browser files of Swagger UI. The package swagger-ui-dist has the same files, and telemetry at its installation. */
const SWAGGER_UI = join(
  dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json')),
  'static',
)

const FILES = {
  'page.css': ASSETS,
  'guides.css': ASSETS,
  'docs.css': ASSETS,
  'docs.js': ASSETS,
  'desktop.css': ASSETS,
  'desktop.js': ASSETS,
  'session.js': ASSETS,
  'next-path.js': ASSETS,
  'sign-in.js': ASSETS,
  'swagger-ui.css': SWAGGER_UI,
  'swagger-ui-bundle.js': SWAGGER_UI,
}

/**
 * The browser loads files and sends requests only to this coordinator, and runs one inline script. Swagger UI has images in data
 * URLs.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `script-src 'self' ${OPEN_REFUSED_URL.source}`,
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const protectPage = (reply: FastifyReply) =>
  reply.headers({
    'content-security-policy': CONTENT_SECURITY_POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  })

/** Sends a page of the coordinator with the headers that protect it. */
export const sendPage = (reply: FastifyReply, html: string) =>
  protectPage(reply)
    .header('cache-control', 'no-cache')
    .type('text/html; charset=utf-8')
    .send(html.replace('</head>', () => `${OPEN_REFUSED_URL.element}\n</head>`))

const sendText = (reply: FastifyReply, text: string) =>
  protectPage(reply).header('cache-control', 'no-cache').type('text/markdown; charset=utf-8').send(text)

/** Adds reply.sendFile(), which streams files from the disk with ETag and Content-Type. */
export async function registerFileSender(app: FastifyInstance): Promise<void> {
  await app.register(fastifyStatic, { root: ASSETS, serve: false })
}

const FILE_TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'application/javascript; charset=utf-8',
}

/** @param url below docs/ */
function fileRoute(url: string, directory: string, file = url): PublicRoute {
  const type = FILE_TYPES[extname(file)]
  if (type === undefined) throw new Error(`The type of ${file} is not known.`)
  const send = createContentHandler(type, () => readFile(join(directory, file)))
  return {
    path: `/docs/${url}`,
    isCompressed: true,
    handler: (request, reply) => send(request, reply.header('x-content-type-options', 'nosniff')),
  }
}

/**
 * @param publicUrl the URL at which clients reach this server, without a slash at its end
 * @param dashboard null: it is turned off, and GET / is a short text
 */
export function pageRoutes(publicUrl: string, dashboard: Dashboard | null): PublicRoute[] {
  const guides = listGuideGroups()
  const home = { publicUrl, version: VERSION, guides }
  return [
    {
      path: '/',
      async handler(request, reply) {
        reply.header('vary', 'accept, cookie')
        if (acceptsHtml(request)) {
          if (dashboard === null) return reply.type('text/plain; charset=utf-8').send(createHomeText(home))
          if (readSessionCookie(request.headers)) return sendDashboard(request, reply, dashboard)
          return sendPage(reply, createHomePage(home))
        }
        return {
          name: 'boxwood',
          version: VERSION,
          apiVersion: API_VERSION,
          docs: `${publicUrl}/docs`,
          openapi: `${publicUrl}/openapi.json`,
        }
      },
    },
    { path: '/llms.txt', handler: async (_request, reply) => sendText(reply, createLlmsText(home)) },
    { path: '/agent.md', handler: async (_request, reply) => sendText(reply, createAgentText(home)) },
    { path: '/docs', handler: async (_request, reply) => sendPage(reply, DOCS_PAGE) },
    { path: '/desktop', handler: async (_request, reply) => sendPage(reply, DESKTOP_PAGE) },
    { path: '/docs/', handler: async (_request, reply) => reply.redirect('../docs', 308) },
    ...(dashboard === null ? [] : dashboardRoutes(dashboard)),
    ...guideRoutes(guides, protectPage),
    ...Object.entries(FILES).map(([name, directory]) => fileRoute(name, directory)),
    ...listNovncFiles().map(({ url, directory, file }) => fileRoute(url, directory, file)),
  ]
}
