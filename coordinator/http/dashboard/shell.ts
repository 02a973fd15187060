// The HTML document of all pages of the dashboard, and its headers. URLs in the document are relative to its base, for proxies
// that add a path.
import { MARK_ICON } from '../../../shared/mark.ts'
import { OPEN_REFUSED_URL } from '../large-requests.ts'
import type { DashboardFiles } from './files.ts'

/** The pages of the dashboard have at most this many segments in their path. */
const MAX_DEPTH = 6

/**
 * The URL of the coordinator, relative to a page, such as `../` for /boxes/fig. Null: no page has this path.
 * @param path of the request, without its query
 */
export function getBase(path: string): string | null {
  const depth = path.split('/').length - 2
  if (depth > MAX_DEPTH) return null
  return depth === 0 ? './' : '../'.repeat(depth)
}

/** The style elements of the terminal emulator need the nonce. No other inline style and one inline script is allowed. */
export const formatPolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' ${OPEN_REFUSED_URL.source}`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

export type Shell = { files: DashboardFiles; script: string; base: string; nonce: string }

export const createShell = ({ files, script, base, nonce }: Shell): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="${base}">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<meta name="color-scheme" content="light dark">
<meta name="boxwood-build" content="${files.buildId}">
<meta name="boxwood-nonce" content="${nonce}">
<title>Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
${OPEN_REFUSED_URL.element}
<link rel="preload" href="dashboard/${files.font}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="dashboard/${files.style}">
<script type="module" src="dashboard/${script}"></script>
</head>
<body>
<div id="app"><noscript><p>The dashboard needs JavaScript. Without it, use the <code>box</code> command: <a href="docs/guides/cli">the command line</a>.</p></noscript></div>
</body>
</html>
`

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** @param reason of a failed build */
export const createFailurePage = (base: string, reason: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="${base}">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<title>The dashboard could not be built · Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<main>
<h1>The dashboard could not be built</h1>
<p>The coordinator works, and so do the API and the <code>box</code> command. Install the packages with <code>npm ci</code>, correct the reason below, and load this page again after ten seconds. <code>BOXWOOD_DASHBOARD=off</code> turns the dashboard off.</p>
<pre>${escapeHtml(reason)}</pre>
</main>
</body>
</html>
`
