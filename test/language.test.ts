// Names, comments, messages and docs use plain technical English (CONTRIBUTING.md, "Language").
// Checks what a pattern can check: words and phrases that were used as metaphors, with the term to use instead. Ordinary
// English is allowed in strings and pages.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { type Line, splitCode } from './support/code-parts.ts'
import { PROJECT_DIR } from './support/project.ts'

/** Rejected in names and comments, as whole words: also as a part of a name, such as `tellReaders` and `TOLD_BYTES`. */
const WORDS = new Map(
  Object.entries({
    ...assign('notify, send, emit, report, print', 'tell tells told telling said hear hears heard news'),
    ...assign('notifier, event', 'bell rung'),
    ...assign('throttle, rate limit, retry policy', 'pace patience'),
    ...assign('acquire, connect', 'visit visits'),
    ...assign('schedule, enqueue', 'poke pokes'),
    ...assign('setDesiredState', 'desire desires'),
    ...assign('subreaper, runner, owner', 'keeper'),
    ...assign(
      'name it: the client, the reader, the process',
      'whoever whomever somebody anybody everybody nobody',
    ),
    ...assign('directory', 'folder folders'),
  }),
)

/** Rejected in names: in a comment these words have ordinary meanings too. */
const NAME_WORDS = new Map(Object.entries(assign('slot, position', 'place places')))

/** Rejected in comments. */
const PHRASES: readonly [RegExp, string][] = [
  [/\blook(s|ed|ing)? (again|at|for)\b/i, 'poll, check, read, scan'],
  [/\b(an?|its|free|next|no) places?\b/i, 'slot, position'],
  [/\bfor (ever|good)\b/i, 'indefinitely, permanently'],
  [/\b(goes|went|go) (on|away)\b/i, 'continues, disconnects'],
  [/\b(comes?|came) back\b/i, 'reconnects, returns'],
  [/\b(give|gives|gave|given|giving) up\b/i, 'discard, stop retrying'],
  [/\b(no longer there|is gone|was gone|are gone)\b/i, 'missing, exited, closed, deleted'],
  [/\bthe one (that|who)\b/i, 'name it'],
  [/(^|[.,:;*/]) ?who (has|is|was|asks|asked|reads|follows|writes|waits)\b/i, 'name the subject'],
]

/** Terms of this project's own that no reader knows: rejected in every text, also in pages and messages. */
const INVENTED: readonly [RegExp, string][] = [
  [/\bunless told\b/i, '"Default: …"'],
  [/\bbeside the tunnel\b/i, 'over a dial-back connection'],
  [/\b(last|sealed) words?\b/i, 'final output, signed token'],
]

/** The Unix user `nobody`. */
const ALLOWED = [
  /[`~]nobody\b|\bnobody:x:|:nobody:|\bNOBODY\b/g,
  // The names of icons.
  /lucide\/dist\/esm\/icons\/[a-z0-9-]+\.mjs/g,
]

const DIRS = [
  'agent',
  'bench',
  'cli',
  'client',
  'coordinator',
  'dashboard',
  'docs',
  'install',
  'mcp',
  'shared',
  'test',
  '.ci',
]
const FILES = ['README.md', 'CONTRIBUTING.md', '.taprc', 'package.json']
const TEXT = /\.(ts|mjs|c|sh|md|json)$|\/run$/
const CODE = /\.(ts|mjs|c|sh)$|\/run$/

function assign(instead: string, words: string): Record<string, string> {
  return Object.fromEntries(words.split(' ').map((word) => [word, instead]))
}

function listFiles(): string[] {
  const found = DIRS.flatMap((dir) => {
    const entries = readdirSync(join(PROJECT_DIR, dir), { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(PROJECT_DIR, join(entry.parentPath, entry.name)))
  })
  return [...found, ...FILES]
    .filter((file) => FILES.includes(file) || TEXT.test(file))
    .filter((file) => !file.includes('node_modules/') && file !== 'test/language.test.ts')
}

/** `tellReaders` → tell, readers; `TOLD_BYTES` → told, bytes. */
const splitWords = (line: string): string[] =>
  line
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)

/** Returns the problems of a file, each as `file:line "phrase": what to write instead`. */
function findProblems(file: string, text: string): string[] {
  const { comments, code } = CODE.test(file) ? splitCode(file, text) : { comments: [], code: [] }
  const lines = text.split('\n').map((line, index) => ({ line: index + 1, text: line }))
  return [
    ...comments.flatMap((comment) => matchWords(comment, WORDS)),
    ...comments.flatMap((comment) => matchPhrases(comment, PHRASES)),
    ...code.flatMap((line) => matchWords(line, new Map([...WORDS, ...NAME_WORDS]))),
    ...lines.flatMap((line) => matchPhrases(line, INVENTED)),
  ].map(({ line, problem }) => `${file}:${line} ${problem}`)
}

const matchWords = ({ line, text }: Line, rejected: Map<string, string>) =>
  splitWords(removeAllowed(text)).flatMap((word) =>
    rejected.has(word) ? [{ line, problem: `"${word}": ${rejected.get(word)}` }] : [],
  )

const matchPhrases = ({ line, text }: Line, rejected: readonly [RegExp, string][]) =>
  rejected.flatMap(([pattern, instead]) => {
    const match = pattern.exec(removeAllowed(text))
    return match ? [{ line, problem: `"${match[0].trim()}": ${instead}` }] : []
  })

const removeAllowed = (text: string): string =>
  ALLOWED.reduce((rest, allowed) => rest.replace(allowed, ''), text)

t.test('no file uses a metaphor instead of a technical term', async (t) => {
  const files = listFiles()
  t.ok(files.length > 300, `${files.length} files`)
  t.same(
    files.flatMap((file) => findProblems(file, readFileSync(join(PROJECT_DIR, file), 'utf8'))),
    [],
  )
})

t.test('every source file starts with one sentence that says what it contains', async (t) => {
  const found = listFiles()
    .filter((file) => file.endsWith('.ts') || file.endsWith('.c'))
    .filter((file) => !/^\/\/ \S/.test(readFileSync(join(PROJECT_DIR, file), 'utf8').replace(/^#!.*\n/, '')))
  t.same(found, [])
})

t.test('the check reports metaphors in names and comments', async (t) => {
  for (const line of [
    'const toldReaders = 1',
    'const places = 1',
    'const text = `a` + visitBox("x")',
    '// Whoever reads it.',
    '/**\n * Whoever reads it.\n */',
    '// The one that waits.',
    'openFolder() // Looks again.',
    'openFolder()',
    '// It goes on for ever.',
    "const message = 'its last words'",
  ])
    t.equal(findProblems('agent/a.ts', line).length > 0, true, line)
  t.match(findProblems('agent/a.ts', "const a = '//'\n\n// A\n/*\n * poke\n */\n"), ['agent/a.ts:5 "poke"'])
  t.match(findProblems('install/a.sh', '#!/bin/sh\n# Nobody reads it.\n'), ['install/a.sh:2 "nobody"'])
  t.match(findProblems('docs/a.md', 'Default: 5, unless told otherwise.\n'), ['docs/a.md:1 "unless told"'])
})

t.test('the check accepts ordinary terms, and ordinary words in strings and pages', async (t) => {
  for (const line of [
    '// Renamed into place. Written in two places.',
    'lookUp()',
    '// The user `nobody`.',
    '// Looks up the owner.',
    '// A path that looks relative. Given a user who has no key, the visitor.',
    "const message = 'Visit these places: somebody told \\'us\\' to look for news.'",
    'const script = `\n  echo visit $a\n`',
    'const pattern = /[\'"]visit/.test(a)',
  ])
    t.same(findProblems('agent/a.ts', line), [], line)
  t.same(findProblems('docs/a.md', 'Somebody looks at places that nobody visits.\n'), [])
})
