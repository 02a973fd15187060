// Texts that a hostile program, box or member chooses as names and output. The dashboard shows each of them as text.
import type { Page } from 'playwright-core'

/** The scripts of the texts set this property of the window. */
const MARKER = 'hostileScriptRan'
const RUN = `window.${MARKER}=1`
/** No request may be sent to this host. */
const HOST = 'http://attacker.invalid'
/** A shell that evaluates the text creates this file. */
export const HOSTILE_FILE = 'hostile-file'

const ESCAPE = '\u001b'
const BEL = '\u0007'
const STRING_END = `${ESCAPE}\\`
export const HOSTILE_CLIPBOARD = 'hostile clipboard'

/** What a terminal must neither execute nor answer. */
export const TERMINAL_SEQUENCES = {
  'OSC 52, a write of the clipboard': `${ESCAPE}]52;c;${btoa(HOSTILE_CLIPBOARD)}${BEL}`,
  'OSC 52, a read of the clipboard': `${ESCAPE}]52;c;?${BEL}`,
  'a title and its report': `${ESCAPE}]0;hostile title${BEL}${ESCAPE}[21t${ESCAPE}[20t`,
  'reports of the window': `${ESCAPE}[14t${ESCAPE}[16t${ESCAPE}[18t${ESCAPE}[11t`,
  'device attributes': `${ESCAPE}[c${ESCAPE}[>c${ESCAPE}[=c${ESCAPE}Z`,
  'reports of the cursor and the status': `${ESCAPE}[5n${ESCAPE}[6n${ESCAPE}[?6n${ESCAPE}[?996n${ESCAPE}[?15n`,
  'reports of modes': `${ESCAPE}[4$p${ESCAPE}[?2004$p${ESCAPE}[x${ESCAPE}[>q${ESCAPE}[?u`,
  DECRQSS: `${ESCAPE}P$qm${STRING_END}${ESCAPE}P$q"p${STRING_END}${ESCAPE}P$qr${STRING_END}`,
  XTGETTCAP: `${ESCAPE}P+q544e${STRING_END}`,
  answerback: '\u0005',
  'reports of colours': [4, 10, 11, 12, 17, 19]
    .map((code) => `${ESCAPE}]${code};${code === 4 ? '1;' : ''}?${BEL}`)
    .join(''),
  'OSC 8, a script as a link': `${ESCAPE}]8;;javascript:${RUN}${BEL}script link${ESCAPE}]8;;${BEL}`,
  'concealed text': `${ESCAPE}[8mconcealed${ESCAPE}[0m`,
} as const

/** By the trick. At most 255 characters, as a name of a file. */
export const HOSTILE_TEXTS: Readonly<Record<string, string>> = {
  'a script': `<script>${RUN}</script>`,
  'an event handler': `<img src=x onerror="${RUN}">`,
  'the end of an attribute': `"><svg onload=${RUN}> ' autofocus onfocus=${RUN} x='`,
  'the end of elements': `</textarea></title></style></pre></script><img src=x onerror=${RUN}>`,
  SVG: `<svg><animate onbegin=${RUN} attributeName=x dur=1s></svg>`,
  'remote resources': `<img src="${HOST}/pixel"><link rel=stylesheet href="${HOST}/x.css">`,
  'a frame': `<iframe srcdoc="<script>parent.${MARKER}=1</script>"></iframe>`,
  'a script as a link': `javascript:${RUN}`,
  'data as a link': `data:text/html,<script>opener.${MARKER}=1</script>`,
  'a Markdown image': `![x](${HOST}/a.png) ![y](javascript:${RUN})`,
  'a Markdown link with a script': `[click](javascript:${RUN}) <javascript:${RUN}>`,
  'a Markdown link with data': `[click](data:text/html,<script>opener.${MARKER}=1</script>)`,
  'a Markdown link that names another host': `[https://example.com/](${HOST}/?x=\u202e"onclick=${RUN})`,
  'HTML in Markdown': `<details open ontoggle=${RUN}><a href="javascript:${RUN}">x</a></details>`,
  'a bidirectional override': 'invoice\u202etxt.exe',
  'bidirectional isolates': '\u2066a\u2067b\u2069\u200e\u200f\u061c',
  'zero-width characters': 'a\u200bb\u200cc\u200dd\u2060e\ufefff',
  'characters without a glyph': 'a\u3164b\u115fc\u2800d\u034fe\u{e0041}f\ufe0f\u{e0100}',
  'control characters': 'a\u0001\u0008\u000b\u007f\u0085\u009b31mb',
  'ends of lines': 'a\nb\rc\u2028d\u2029e',
  ...TERMINAL_SEQUENCES,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is not one of this file.
  templates: '{{7*7}} ${7*7} <%= 7*7 %> #{7*7} {{constructor.constructor("alert(1)")()}}',
  'a long word': 'W'.repeat(240),
  'a property of objects': '__proto__',
  'another property of objects': 'constructor',
  'a formula': `=HYPERLINK("${HOST}/","click")`,
  'a path': '../../../etc/passwd',
  'quotes of a shell': `'; touch ${HOSTILE_FILE}; echo '`,
  'double quotes of a shell': `"; touch ${HOSTILE_FILE}; echo "`,
  'substitutions of a shell': `$(touch ${HOSTILE_FILE}) \`touch ${HOSTILE_FILE}\` \${x:=y}`,
  'quotes and hidden characters': `'\u202e"$(touch ${HOSTILE_FILE})\\' %s %n \\101 !x\n\n`,
  'operators of a shell': `a&touch ${HOSTILE_FILE}|cat>${HOSTILE_FILE};#* ?[a] {a,b}`,
  'an option': '-rf',
  'expansions of a shell': '~root =ls %1 !! $HOME',
}

export const ALL_HOSTILE_TEXTS = Object.values(HOSTILE_TEXTS)

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** How a page shows the text. @param keep characters that the element shows as they are */
export const toVisible = (text: string, keep = ''): string =>
  text.replace(HIDDEN, (character) =>
    keep.includes(character)
      ? character
      : `⟨U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )

/** Collects what an attack on the page causes. To be called before the first page of the context opens. */
export async function watchForAttacks(page: Page, origin: string): Promise<string[]> {
  const found: string[] = []
  await page.context().exposeFunction('reportAttack', (text: string) => void found.push(text))
  await page
    .context()
    .addInitScript(
      "addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => reportAttack('violation of ' + violatedDirective + ' by ' + blockedURI))",
    )
  page.on('dialog', (dialog) => {
    found.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('popup', (popup) => found.push(`window ${popup.url()}`))
  page.on('request', (request) => {
    const url = new URL(request.url())
    const isOwn = url.host === new URL(origin).host || ['data:', 'blob:'].includes(url.protocol)
    if (!isOwn) found.push(`request of ${request.url()}`)
  })
  return found
}

/** Evaluated in the page: what of the document is not text, a link of the web, or an element of the dashboard. */
const INSPECT = `(() => {
  const hidden = /[\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]/u
  const found = []
  if (window.${MARKER} !== undefined) found.push('a script ran')
  if (frames.length > 0) found.push('a frame')
  if ({}.polluted !== undefined || Object.keys(Object.prototype).length > 0) found.push('a changed prototype')
  const isPlain = (text) => !hidden.test(text.replaceAll(/[\\n\\t]/g, ''))
  if (hidden.test(document.title)) found.push('title ' + JSON.stringify(document.title))
  for (const element of document.body.querySelectorAll('*')) {
    const name = element.tagName.toLowerCase()
    if (/^(script|iframe|object|embed|math|template|base|meta|link|animate)$/.test(name)) found.push(name)
    if (name === 'svg' && !element.matches('svg.lanes, svg.overview, svg.icon, svg.mark, svg.days, svg.sparkline')) found.push(name)
    if (name === 'img' && !element.src.startsWith('blob:')) found.push('image ' + element.src)
    for (const attribute of element.attributes) {
      if (/^on|^srcdoc$|^formaction$/.test(attribute.name)) found.push(name + ' ' + attribute.name)
      if (!isPlain(attribute.value)) found.push(name + ' ' + attribute.name + ' ' + JSON.stringify(attribute.value))
    }
    if (name === 'a' && element.href !== '') {
      const url = new URL(element.href)
      const isOther = url.origin !== location.origin
      if (!/^https?:$/.test(url.protocol)) found.push('link ' + element.href)
      if (isOther && (!element.rel.split(' ').includes('noopener') || element.target !== '_blank')) found.push('opener ' + element.href)
      const shown = element.closest('dialog') ?? element
      if (isOther && !shown.textContent.includes(element.getAttribute('href'))) found.push('hidden address ' + element.href)
    }
  }
  // Where the terminal draws, the characters are those of its cells.
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode
    if (!isPlain(data) && parentElement.closest('.xterm, textarea') === null) found.push('text ' + JSON.stringify(data.slice(0, 200)))
  }
  return found
})()`

/** What the page shows that is not text. */
export const inspectPage = (page: Page): Promise<string[]> => page.evaluate(INSPECT)
