// The links of the Markdown pages and of the READMEs of directories: each relative link names a file of the project, and each anchor a heading of the page.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import t from 'tap'
import { listReadmes } from './support/directories.ts'
import { listPages } from './support/pages.ts'
import { PROJECT_DIR } from './support/project.ts'

type Link = { page: string; target: string }

const stripCode = (markdown: string): string =>
  markdown.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '``')

const findTargets = (markdown: string): string[] =>
  [...stripCode(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)

/** The anchors that GitHub gives to headings: lower case, without punctuation, a hyphen for each space. */
const findAnchors = (markdown: string): string[] =>
  [...markdown.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

/** Returns null for a valid link, else the reason. */
function findProblem({ page, target }: Link): string | null {
  if (/^[a-z]+:/.test(target)) return null
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : resolve(dirname(page), path)
  if (!existsSync(file)) return `${page}: no file ${path}`
  if (anchor !== undefined && !findAnchors(readFileSync(file, 'utf8')).includes(anchor))
    return `${page}: no heading for #${anchor} in ${file}`
  return null
}

t.test('every relative link of a page has a target', async (t) => {
  const pages = [...listPages(), ...listReadmes(PROJECT_DIR)].map((name) => join(PROJECT_DIR, name))
  const links = pages.flatMap((page) =>
    findTargets(readFileSync(page, 'utf8')).map((target) => ({ page, target })),
  )
  t.ok(links.length > 30, `${links.length} links`)
  t.same(
    links.map(findProblem).filter((problem) => problem !== null),
    [],
  )
})

/** The pages that a message or a comment names: `box docs TOPIC`, docs/TOPIC.md, and the guides of the coordinator. */
const findTopics = (source: string): string[] =>
  [...source.matchAll(/\bdocs (?!-)([a-z-]+)\\?`|\bdocs\/(?:guides\/)?([a-z-]+)\.md\b/g)].map(
    ([, topic, file]) => topic ?? file ?? '',
  )

t.test('every page that a source names exists', async (t) => {
  const topics = (await readdir(join(PROJECT_DIR, 'docs'))).map((name) => name.replace(/\.md$/, ''))
  const sources = globSync(
    ['{agent,cli,coordinator,dashboard,install,shared}/**/*.{ts,tsx,js,sh,service,yaml,json}', 'Dockerfile'],
    { cwd: PROJECT_DIR },
  )
  const found = sources.flatMap((file) =>
    findTopics(readFileSync(join(PROJECT_DIR, file), 'utf8')).map((topic) => ({ file, topic })),
  )
  t.ok(found.length > 30, `${found.length} names of pages`)
  t.same(
    found.filter(({ topic }) => !topics.includes(topic)),
    [],
  )
  t.same(findTopics('`$(box) docs aws`, \\`box docs tls\\`, docs/a-b.md, docs/guides/c.md, docs -h`'), [
    'aws',
    'tls',
    'a-b',
    'c',
  ])
})

/** Ten minutes of reading. Tables are for reference, and code is skimmed. */
const MAX_WORDS = 2000

const countWords = (markdown: string): number =>
  stripCode(markdown)
    .split('\n')
    .filter((line) => !line.startsWith('|'))
    .join(' ')
    .split(/\s+/)
    .filter((word) => word !== '').length

t.test('every page fits ten minutes of reading', async (t) => {
  for (const page of listPages().filter((page) => page.startsWith('docs/'))) {
    const words = countWords(readFileSync(join(PROJECT_DIR, page), 'utf8'))
    t.ok(words <= MAX_WORDS, `${page}: ${words} words`)
  }
  t.equal(countWords('# A page\n\nTwo `words of code`.\n\n| a | table |\n\n```sh\nrun this\n```\n'), 5)
})

t.test('a missing file and a missing heading are reported', async (t) => {
  const page = join(PROJECT_DIR, 'README.md')
  for (const target of ['docs/missing.md', '#missing', 'docs/cli.md#missing'])
    t.type(findProblem({ page, target }), 'string', target)
  for (const target of ['docs/cli.md', '#quick-start', 'docs/cli.md#lists', 'https://example.com/x'])
    t.equal(findProblem({ page, target }), null, target)
})

t.test('the README links to every page', async (t) => {
  const targets = findTargets(readFileSync(join(PROJECT_DIR, 'README.md'), 'utf8')).map(
    (target) => target.split('#')[0],
  )
  for (const page of listPages().slice(1)) t.ok(targets.includes(page), page)
})
