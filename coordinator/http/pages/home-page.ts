// The page that the browser of a visitor gets for GET /. URLs are relative, for proxies that add a path.
import { MARK_ELEMENT, MARK_ICON } from '../../../shared/mark.ts'
import type { GuideGroup } from './guide-groups.ts'
import { formatGroups } from './guides.ts'

export type HomePage = {
  /** The http or https URL of the coordinator (BOXWOOD_PUBLIC_URL): it contains no character to escape in HTML. */
  publicUrl: string
  version: string
  guides: readonly GuideGroup[]
}

export const createHomePage = ({ publicUrl, version, guides }: HomePage): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<main>
<div class="welcome">
${MARK_ELEMENT}
<h1>Boxwood <small>${version}</small></h1>
<p>This is the coordinator of a Boxwood installation. Boxwood hosts boxes: Linux machines on which people and coding agents work.</p>
<p class="links"><a class="primary" href="sign-in">Sign in</a> <a href="#guides">Guides</a> <a href="docs">API reference</a> <a href="openapi.json">OpenAPI document</a></p>
</div>
<h2>Command line</h2>
<p>On the coordinator's machine, in the directory of Boxwood, this command puts <code>box</code> on the <code>PATH</code>:</p>
<pre>./box install</pre>
<p>On another machine, install Boxwood too, and sign in:</p>
<pre>box login ${publicUrl}
box ls</pre>
<p>Programs use an API key, which <code>box keys create NAME</code> creates:</p>
<pre>export BOXWOOD_URL=${publicUrl}
export BOXWOOD_API_KEY=dcp_…
box ls</pre>
<p>On the coordinator's machine, <code>box open</code> signs the owner in to this page, and the owner's API key is in the file <code>owner.key</code> of the data directory.</p>
<h2 id="guides">Guides</h2>
<div class="guides">
${formatGroups(guides, (topic) => `<a href="docs/guides/${topic}">`).replaceAll('h2>', 'h3>')}
</div>
</main>
</body>
</html>
`

/** The text for browsers where the dashboard is turned off. */
export const createHomeText = ({ publicUrl, version }: Pick<HomePage, 'publicUrl' | 'version'>): string =>
  `This is the coordinator of a Boxwood installation, version ${version}. Its dashboard is turned off.

API reference:  ${publicUrl}/docs
Command line:   box login ${publicUrl}
`
