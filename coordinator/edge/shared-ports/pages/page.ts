// The pages of Boxwood for viewers of links. Clients that do not accept HTML get JSON.
import { createHash } from 'node:crypto'
import { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from 'node:http'
import { MARK_ELEMENT } from '../../../../shared/mark.ts'
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

/** The colours are those of the dashboard, of which an origin of a box can load no file. */
const STYLE = `:root {
  color-scheme: light dark;
  --text: light-dark(#1a211e, #eceeed);
  --muted: light-dark(#5f6563, #adb5b2);
  --background: light-dark(#fff, #101211);
  --page: light-dark(#f7f9f8, #171918);
  --line: light-dark(#e1e5e3, #2a2e2c);
  --accent: light-dark(#1a7259, #1fd8a4);
  --accent-solid: light-dark(#1a7259, #29a383);
  --on-accent: light-dark(#fff, #0d1512);
}
body { display: grid; min-height: 100dvh; margin: 0; place-items: center; color: var(--text); background: var(--page); font: 15px/1.6 system-ui, sans-serif }
main { box-sizing: border-box; width: min(28rem, 100vw - 2rem); padding: 2rem; border: 1px solid var(--line); border-radius: 12px; background: var(--background); overflow-wrap: anywhere }
.mark, a { color: var(--accent) }
h1 { margin: .75rem 0 .5rem; font-size: 1.3rem; line-height: 1.3 }
button { font: inherit; font-weight: 500; padding: .4rem 1.2rem; border: 0; border-radius: 6px; color: var(--on-accent); background: var(--accent-solid); cursor: pointer }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
footer { margin-top: 1.5rem; color: var(--muted); font-size: .85rem }`

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
<main>
${MARK_ELEMENT}
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(message)}${reloads ? ' This page reloads itself.' : ''}</p>
${link ? formatLink(link) : ''}${button ? formatButton(button) : ''}<footer>Boxwood</footer>
</main>
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
