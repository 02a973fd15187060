// The pages of Boxwood for viewers of links. Clients that do not accept HTML get JSON.
import { createHash } from 'node:crypto'
import { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from 'node:http'
import { isBodyPending } from '../../../http/lingering-close.ts'

export type Page = {
  status: number
  /** The field `error` of the JSON. */
  code: string
  title: string
  message: string
  /** The page loads itself again until it is not shown any more. Default: false. */
  reloads?: boolean
  /** A link to a page of the main origin. */
  link?: { label: string; href: string }
  /** A button that sends a POST request to this path. The response may redirect to the origin `leadsTo`. */
  button?: { label: string; action: string; leadsTo: string }
  /** Clears what an earlier app of the origin has stored in the browser. Default: false. */
  clearsSite?: boolean
  setCookies?: readonly string[]
}

const RELOAD_SECONDS = 2

const STYLE = `:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 36rem; padding: 0 1.5rem }
h1 { font-size: 1.4rem }
button { font: inherit; padding: .4rem 1.2rem }
footer { margin-top: 3rem; opacity: .6; font-size: .85rem }`

const STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`

/** Browsers also check the redirects of a form against `form-action`. */
const createContentSecurityPolicy = ({ button }: Page): string =>
  [
    "default-src 'none'",
    `style-src ${STYLE_SOURCE}`,
    `form-action ${button ? `'self' ${button.leadsTo}` : "'none'"}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const formatButton = ({ label, action }: NonNullable<Page['button']>): string =>
  `<form method="post" action="${escapeHtml(action)}"><button>${escapeHtml(label)}</button></form>\n`

const formatLink = ({ label, href }: NonNullable<Page['link']>): string =>
  `<p><a href="${escapeHtml(href)}">${escapeHtml(label)}</a></p>\n`

const formatPage = ({ title, message, reloads, link, button }: Page): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
${reloads ? `<meta http-equiv="refresh" content="${RELOAD_SECONDS}">\n` : ''}<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(message)}${reloads ? ' This page reloads itself.' : ''}</p>
${link ? formatLink(link) : ''}${button ? formatButton(button) : ''}<footer>Boxwood</footer>
</body>
</html>
`

/** Clients that are no browsers ask for no HTML. */
export const acceptsHtml = ({ accept = '' }: IncomingMessage['headers']): boolean =>
  /\btext\/html\b/i.test(accept)

/** Sends the page, or closes the connection when a response has already started. */
export function sendPage(request: IncomingMessage, response: ServerResponse, page: Page): void {
  if (response.destroyed) return
  if (response.headersSent) return void response.destroy()
  const isHtml = acceptsHtml(request.headers)
  const body = isHtml ? formatPage(page) : `${JSON.stringify({ error: page.code, message: page.message })}\n`
  const headers: OutgoingHttpHeaders = {
    'content-type': `${isHtml ? 'text/html' : 'application/json'}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    ...createPageHeaders(request, page.setCookies),
    ...(isHtml && { 'content-security-policy': createContentSecurityPolicy(page) }),
    // With no-referrer, browsers would send the POST request of the button with `Origin: null`.
    ...(page.button && { 'referrer-policy': 'same-origin' }),
    ...(page.reloads && { 'retry-after': String(RELOAD_SECONDS) }),
    ...(page.clearsSite && { 'clear-site-data': '"cache", "storage"' }),
  }
  // The status message of a response of the box that cannot be sent must not be used.
  response.writeHead(page.status, STATUS_CODES[page.status], headers).end(body)
}

export function sendRedirect(
  request: IncomingMessage,
  response: ServerResponse,
  redirect: { status: 302 | 303 | 307; location: string; setCookies?: readonly string[] },
): void {
  if (response.destroyed) return
  response.writeHead(redirect.status, {
    location: redirect.location,
    'content-length': 0,
    ...createPageHeaders(request, redirect.setCookies),
  })
  response.end()
}

const createPageHeaders = (
  request: IncomingMessage,
  setCookies: readonly string[] = [],
): OutgoingHttpHeaders => ({
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  ...(setCookies.length > 0 && { 'set-cookie': [...setCookies] }),
  // The rest of the body is discarded, and the connection is closed.
  ...(isBodyPending(request) && { connection: 'close' }),
})
