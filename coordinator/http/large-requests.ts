// The limits of the request line and headers, and the page for a browser whose cookies are larger. Any host of a site, such as a
// link to a shared port, can set cookies for all hosts of the site: up to 180 of 4 KiB in Chromium and Firefox.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'

/** Fits a path of 4096 percent-encoded bytes and the headers, without cookies. */
const HEADER_BYTES = 32 * 1024
/** Cookies that are not of Boxwood are ignored up to this size. */
const COOKIE_BYTES = 64 * 1024
/** Node's parser refuses larger ones, before a request exists: see respondToClientError(). Its cost grows with the square. */
export const MAX_HEADER_BYTES = HEADER_BYTES + COOKIE_BYTES

export const TOO_LARGE = 431

/** Whether the request line and the headers without cookies are too large. */
export function hasLargeHeaders({ url = '', rawHeaders }: IncomingMessage): boolean {
  let bytes = url.length
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]]
    if (name.toLowerCase() !== 'cookie') bytes += name.length + value.length
  }
  return bytes > HEADER_BYTES
}

const readScript = (name: string): string =>
  readFileSync(join(import.meta.dirname, 'pages/assets', name), 'utf8')

/** The element and its source for script-src of a Content-Security-Policy. */
function createInlineScript(name: string): { element: string; source: string } {
  const text = readScript(name)
  const hash = createHash('sha256').update(text).digest('base64')
  return { element: `<script type="module">${text}</script>`, source: `'sha256-${hash}'` }
}

const DELETE_COOKIES = createInlineScript('delete-large-cookies.js')
/** Every page has it: a page whose scripts or requests are refused recovers by itself. */
export const OPEN_REFUSED_URL = createInlineScript('open-refused-url.js')

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>The cookies of this site are too large</title>
</head>
<body>
<h1>The cookies of this site are too large</h1>
<p>Another page of this site has stored cookies that are larger than the server accepts, or the address is too long. The largest cookies are deleted now. If this page stays, delete the cookies of this site in the settings of your browser, and load the page again.</p>
${DELETE_COOKIES.element}
</body>
</html>
`

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-length': String(Buffer.byteLength(PAGE)),
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; script-src ${DELETE_COOKIES.source}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}

/** The bytes of the response with the page, for a request that has not been parsed. */
export const LARGE_COOKIES_RESPONSE = `HTTP/1.1 ${TOO_LARGE} Request Header Fields Too Large\r\n${Object.entries(
  PAGE_HEADERS,
)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')}\r\n${PAGE}`

/** Responds to a navigation whose cookies are too large for the program that would get it. */
export function sendLargeCookiesPage(response: ServerResponse): void {
  response.writeHead(TOO_LARGE, PAGE_HEADERS).end(PAGE)
}
