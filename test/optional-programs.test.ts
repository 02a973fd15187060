// Each file below test/ that uses an optional program, or an isolation level that may not work, asks for it: its imports reach
// requires.ts. The short part of CI runs with these programs hidden, where another test would fail.
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from './support/project.ts'
import { OPTIONAL_PROGRAMS } from './support/requires.ts'
import { asksForPrograms, listRelativeImports } from './support/suite/asking-files.ts'

/** Files that do not ask, and why. */
const EXCEPTIONS = new Map([
  ['test/coordinator/providers/local/describe-isolation.test.ts', 'its level works on no machine'],
  ['test/coordinator/providers/local/isolation-record.test.ts', 'starts no box at the levels that it names'],
  ['test/support/suite/order.ts', 'uses git where it is installed, to rotate the files of a budget'],
  ['test/support/engines/images.ts', 'docker.ts and podman.ts ask for IMAGE_PROGRAMS'],
  ['test/support/root-filesystems/machine.ts', 'the tests of machines have a tree of trees.ts, which asks'],
])

const PROGRAM = `(?:/[\\w./-]*/)?(${OPTIONAL_PROGRAMS.map((name) => name.replace(/[.+]/g, '\\$&')).join('|')})`
/** A string of which the program is the first word. */
const STRING = `['"\`]${PROGRAM}(?=['"\`\\s;|&])`
const CALL = String.raw`\b(?:spawn|run|exec|start)(?:Sync|File|FileSync|[A-Z]\w*)?\)?\(\s*`

const USES = [
  // spawn('git', …), promisify(execFile)('git', …), exec('git …'), run(t, ['git', …]), run([...['git', …]])
  new RegExp(String.raw`${CALL}(?:\w+,\s*)?(?:\[\s*)?(?:\.\.\.\[\s*)?${STRING}`, 'g'),
  // ['sh', '-c', 'git …']
  new RegExp(String.raw`['"]-l?c['"],\s*${STRING}`, 'g'),
  // existsSync('/usr/bin/git')
  new RegExp(String.raw`\b(?:existsSync|accessSync)\(\s*['"][\w./-]*bin/${PROGRAM}['"]`, 'g'),
  /\b(ISOLATION_LEVELS)\b/g,
  /'(bubblewrap|namespaces)'/g,
]

/** The uses in the text, as `LINE: NAME`. */
const listUses = (text: string): string[] =>
  USES.flatMap((form) =>
    [...text.matchAll(form)].map(
      ({ index, 0: use, 1: name }) => `${text.slice(0, index + use.length).split('\n').length}: ${name}`,
    ),
  )

t.test('the files that use an optional program ask for it', (t) => {
  const self = `test/${basename(import.meta.filename)}`
  const files = globSync('test/**/*.ts', { cwd: PROJECT_DIR, exclude: ['test/**/node_modules/**'] })
  t.ok(files.length > 100, 'the search finds files')
  const uses = files
    .filter((file) => file !== self && !asksForPrograms(PROJECT_DIR, file))
    .map((file) => ({ file, uses: listUses(readFileSync(join(PROJECT_DIR, file), 'utf8')) }))
    .filter(({ uses }) => uses.length > 0)
  t.same(
    uses
      .filter(({ file }) => !EXCEPTIONS.has(file))
      .flatMap(({ file, uses }) => uses.map((use) => `${file}:${use}`)),
    [],
    'use requires() of test/support/requires.ts, or test/support/isolation-levels.ts',
  )
  const used = new Set(uses.map(({ file }) => file))
  t.same(
    [...EXCEPTIONS.keys()].filter((file) => !used.has(file)),
    [],
    'each exception is needed',
  )
  t.end()
})

t.test('refuses what uses an optional program', (t) => {
  for (const [text, name] of [
    [`spawn('git', ['status'])`, 'git'],
    [`spawnSync("openssl", ['version'], { encoding: 'utf8' })`, 'openssl'],
    [`execFileSync(\n  'ssh-keygen',\n  args,\n)`, 'ssh-keygen'],
    [`await promisify(execFile)('fish', args)`, 'fish'],
    [`execSync('curl -fsS http://localhost')`, 'curl'],
    [`exec(\`tmux -V; echo $?\`)`, 'tmux'],
    [`spawn('/usr/bin/busybox', ['sh'])`, 'busybox'],
    [`sandbox.run(['docker', ...args])`, 'docker'],
    [`startBoundProcess(t, [\n  ...['slirp4netns', '--configure'],\n])`, 'slirp4netns'],
    [`spawn('sh', ['-c', 'ip link set lo up'])`, 'ip'],
    [`existsSync('/usr/sbin/nginx')`, 'nginx'],
    [`for (const level of ISOLATION_LEVELS) {`, 'ISOLATION_LEVELS'],
    [`{ BOXWOOD_LOCAL_ISOLATION: 'bubblewrap' }`, 'bubblewrap'],
    [`openHost(dir, { level: 'namespaces' })`, 'namespaces'],
  ] as const) {
    const [use = '', ...more] = listUses(text)
    t.match(use, new RegExp(`^\\d+: ${name.replace('.', '\\.')}$`), text)
    t.same(more, [], text)
  }
  t.same(listUses(`a\nspawn(\n  'git',\n)`), ['3: git'], 'with the line of the name')
  t.end()
})

t.test('accepts other programs and texts', (t) => {
  for (const text of [
    `spawn('tar', ['-x'])`,
    `spawn(process.execPath, ['git'])`,
    `spawnSync('sh', ['-c', 'command -v git'])`,
    `spawn('gitk', [])`,
    `spawn('ip-address', [])`,
    `box('ssh', 'fig')`,
    `t.match(await box(['aws']), { code: 0 })`,
    `kind: 'docker'`,
    `existsSync('/etc/ssh')`,
    `{ BOXWOOD_LOCAL_ISOLATION: 'process' }`,
    `const message = 'namespaces do not work'`,
  ])
    t.same(listUses(text), [], text)
  t.end()
})

t.test('follows the imports of values', (t) => {
  t.same(
    listRelativeImports(`// import { a } from './comment.ts'
import t, { type Test } from 'tap'
import type { A } from './type.ts'
import { type B, b } from './b.ts'
import {
  c,
} from '../c.ts'
import './side-effect.ts'
export { d } from './d.ts'
export type { E } from './type.ts'
await import('./dynamic.ts')
`),
    ['./b.ts', '../c.ts', './d.ts', './side-effect.ts', './dynamic.ts'],
  )
  const asks = (file: string) => asksForPrograms(PROJECT_DIR, file)
  t.ok(asks('test/support/requires.ts'))
  t.ok(asks('test/support/tmux.ts'), 'imports it')
  t.ok(asks('test/e2e/log.test.ts'), 'imports a file that imports it')
  t.ok(asks('test/coordinator/identity/keys/keys.test.ts'), 'Postgres')
  t.notOk(asks('test/support/sqlite.ts'))
  t.notOk(asks('test/support/coordinator.ts'))
  t.end()
})
