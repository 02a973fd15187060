// Guides as pages: anchors, links, and source that would be HTML.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { GUIDE_GROUPS } from '../../../../coordinator/http/pages/guide-groups.ts'
import { renderGuide } from '../../../../coordinator/http/pages/render-guide.ts'
import { PROJECT_DIR } from '../../../support/project.ts'

t.test('every guide is in one group, with its title', (t) => {
  const docs = join(PROJECT_DIR, 'docs')
  const titles = readdirSync(docs)
    .filter((name) => name.endsWith('.md'))
    .map((name) => [name.slice(0, -3), /^# (.*)$/m.exec(readFileSync(join(docs, name), 'utf8'))?.[1]])
  const listed = GUIDE_GROUPS.flatMap(({ guides }) => guides.map(({ topic, title }) => [topic, title]))
  t.same(listed.toSorted(), titles.toSorted())
  t.end()
})

t.test('headings have the anchors of GitHub, and links lead to pages', (t) => {
  const { title, html, headings } = renderGuide(
    '# The `box` & more\n\n## Copy files\n\n## Copy files\n\n[a](tls.md#tls), [b](../CONTRIBUTING.md), [c](https://x.example/), [d](#copy-files)\n\n| a |\n|---|\n| `x` |\n',
    ['tls'],
  )
  t.equal(title, 'The box &amp; more')
  t.same(headings, [
    { id: 'copy-files', text: 'Copy files' },
    { id: 'copy-files-1', text: 'Copy files' },
  ])
  t.same(
    [...html.matchAll(/href="([^"]*)"/g)].map(([, url]) => url),
    ['tls#tls', '../../#guides', 'https://x.example/', '#copy-files'],
  )
  t.match(html, /<table>[\s\S]*<code>x<\/code>/)
  t.end()
})

t.test('HTML and other schemes are text', (t) => {
  const { html } = renderGuide(
    '# A\n\n<script>alert(1)</script> <b onclick="x">b</b> [c](javascript:alert(1)) ![d](data:text/html,x)\n\n<picture>\n<source srcset="x">\n<img alt="A box" src="images/a.png">\n</picture>\n\n<!-- begin table -->\n',
    [],
  )
  t.notMatch(html, /<script|<b |href="javascript|src="data:text|begin table/)
  t.match(html, '<img src="images/a.png" alt="A box">')
  t.end()
})
