// Names, comments, messages and docs use plain technical English (CONTRIBUTING.md, "Language").
// Checks what a pattern can check: words and phrases that were used as metaphors, with the term to use instead.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from './support/project.ts'

/** Checked as whole words, also inside identifiers such as `tellReaders` and `TOLD_BYTES`. */
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
    ...assign('again, new', 'anew'),
    ...assign('started', 'begun'),
    ...assign('split, partial', 'halved'),
  }),
)

const PHRASES: readonly [RegExp, string][] = [
  [/\blook(s|ed|ing)?\b(?! (up|complete|like)\b)/i, 'poll, check, read, scan'],
  [/(?<!\bin|\binto|\btake)\s+places?\b/i, 'slot, position'],
  [/\bfor (ever|good)\b/i, 'indefinitely, permanently'],
  [/\b(goes|went|go) (on|away)\b/i, 'continues, disconnects'],
  [/\b(comes?|came) back\b/i, 'reconnects, returns'],
  [/\b(give|gives|gave|given|giving) up\b/i, 'discard, stop retrying'],
  [/\bunless told\b/i, '"Default: …"'],
  [/\bbeside the tunnel\b/i, 'over a dial-back connection'],
  [/\b(no longer there|is gone|was gone|are gone)\b/i, 'missing, exited, closed, deleted'],
  [/\bthe one (that|who)\b/i, 'name it'],
  [/\bwho (has|is|was|asks|asked|reads|follows|writes|waits)\b/i, 'name the subject'],
  [/\b(last|sealed) words?\b/i, 'final output, signed token'],
]

/** The Unix user `nobody`. */
const ALLOWED = [/[`~]nobody\b|\bnobody:x:|:nobody:|\bNOBODY\b/g]

const DIRS = ['agent', 'bench', 'cli', 'coordinator', 'docs', 'install', 'shared', 'test', '.ci']
const FILES = ['README.md', 'CONTRIBUTING.md', '.taprc', 'package.json']
const TEXT = /\.(ts|c|sh|md|json)$|\/run$/

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

function findProblems(line: string): string[] {
  const text = ALLOWED.reduce((rest, allowed) => rest.replace(allowed, ''), line)
  const words = splitWords(text).flatMap((word) => (WORDS.has(word) ? [`"${word}": ${WORDS.get(word)}`] : []))
  const phrases = PHRASES.flatMap(([pattern, instead]) => {
    const match = pattern.exec(text)
    return match ? [`"${match[0].trim()}": ${instead}`] : []
  })
  return [...words, ...phrases]
}

t.test('no file uses a metaphor instead of a technical term', async (t) => {
  const files = listFiles()
  t.ok(files.length > 300, `${files.length} files`)
  const found = files.flatMap((file) =>
    readFileSync(join(PROJECT_DIR, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => findProblems(line).map((problem) => `${file}:${index + 1} ${problem}`)),
  )
  t.same(found, [])
})

t.test('every source file starts with one sentence that says what it contains', async (t) => {
  const found = listFiles()
    .filter((file) => file.endsWith('.ts') || file.endsWith('.c'))
    .filter((file) => !/^\/\/ \S/.test(readFileSync(join(PROJECT_DIR, file), 'utf8').replace(/^#!.*\n/, '')))
  t.same(found, [])
})

t.test('the check reports metaphors and accepts ordinary terms', async (t) => {
  for (const line of [
    'const toldReaders = 1',
    '// Whoever reads it.',
    'openFolder()',
    '// It goes on for ever.',
  ])
    t.not(findProblems(line).length, 0, line)
  for (const line of [
    '// Renamed into place.',
    'lookUp()',
    '// The user `nobody`.',
    '// Looks up the owner.',
  ])
    t.same(findProblems(line), [], line)
})
