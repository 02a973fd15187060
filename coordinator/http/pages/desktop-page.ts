// The page of GET /desktop?box=NAME: the desktop of a box. desktop.js shows it with noVNC. URLs are relative, for proxies that
// add a path.

import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { MARK_ELEMENT, MARK_ICON } from '../../../shared/mark.ts'

export const DESKTOP_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Desktop · Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
<link rel="stylesheet" href="docs/page.css">
<link rel="stylesheet" href="docs/desktop.css">
<script type="module" src="docs/desktop.js"></script>
</head>
<body>
<main>
<header>
<p><a class="home" href="./" aria-label="Boxes">${MARK_ELEMENT}</a></p>
<h1>Desktop <span id="box"></span></h1>
<noscript>This page needs JavaScript.</noscript>
<div id="controls" hidden>
<button type="button" id="start-desktop">Start desktop</button>
<button type="button" id="start-browser">Start browser</button>
<button type="button" id="stop-browser">Stop browser</button>
<button type="button" id="stop-desktop">Stop</button>
<button type="button" id="connect">Connect</button>
<button type="button" id="focus">Use keyboard</button>
<button type="button" id="full-screen">Full screen</button>
</div>
<p id="status" role="status"></p>
<p id="error" role="alert"></p>
</header>
<section id="missing" hidden>
<p>The box lacks programs of the desktop: <span class="packages"></span>. Run as root <span class="where"></span>:</p>
<pre></pre>
</section>
<details id="clipboard" hidden>
<summary>Clipboard</summary>
<p><label for="clipboard-text">Text of the clipboard of the box</label><br>
<textarea id="clipboard-text" rows="3" spellcheck="false"></textarea></p>
<p><button type="button" id="copy-to-box">Copy to the box</button></p>
</details>
<p id="keyboard" hidden>While the screen has the focus, all keys go to the box. <kbd>Ctrl</kbd>+<kbd>Alt</kbd>+<kbd>Esc</kbd> returns the focus to this page.</p>
<div id="screen" role="application" aria-label="Screen of the box" hidden></div>
</main>
</body>
</html>
`

/** The package @novnc/novnc exports only core/rfb.js, which imports the other files. */
const NOVNC = dirname(dirname(createRequire(import.meta.url).resolve('@novnc/novnc')))

/** The files of noVNC that the browser loads: URL below docs/ → directory and name. */
export const listNovncFiles = (): { url: string; directory: string; file: string }[] =>
  ['core', 'vendor'].flatMap((root) =>
    readdirSync(join(NOVNC, root), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.js'))
      .map((path) => ({ url: `novnc/${root}/${path}`, directory: join(NOVNC, root), file: path })),
  )
