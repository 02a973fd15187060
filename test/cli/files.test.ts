// box files: lists, inspects, moves and removes files of a box, and creates directories.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { formatMode } from '../../cli/files/file-list.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const home = coordinator.getHome('fig')
const inHome = (name: string) => join(home, name)
const files = (...args: string[]) => runBox(coordinator, ['files', ...args])

t.test('modes are shown as ls shows them', async (t) => {
  for (const [type, mode, text] of [
    ['file', '0644', '-rw-r--r--'],
    ['directory', '1777', 'drwxrwxrwt'],
    ['file', '6755', '-rwsr-sr-x'],
    ['file', '7000', '---S--S--T'],
    ['symlink', '0777', 'lrwxrwxrwx'],
  ] as const)
    t.equal(formatMode({ type, mode }), text)
})

t.test('ls lists a directory', async (t) => {
  t.same(await files('ls', 'fig'), { code: 0, stdout: '', stderr: 'The home directory is empty.\n' })
  mkdirSync(inHome('docs'), { mode: 0o755 })
  writeFileSync(inHome('notes.md'), 'x'.repeat(2048), { mode: 0o640 })
  symlinkSync('docs', inHome('link'))
  writeFileSync(inHome('odd\x1b[2J'), '')
  writeFileSync(Buffer.concat([Buffer.from(`${home}/`), Buffer.from([0xff])]), '')
  coordinator.giveFiles('fig')
  const { stdout } = await files('ls', 'fig')
  const lines = stdout.trimEnd().split('\n')
  t.match(lines, [
    /^MODE +OWNER +SIZE +MODIFIED +NAME$/,
    /^drwxr-xr-x +\S+ +- +\d+\w ago +docs$/,
    /^lrwxrwxrwx +\S+ +- +\d+\w ago +link -> docs$/,
    /^-rw-r----- +\S+ +2\.00 KiB +\d+\w ago +notes\.md$/,
    /odd\uFFFD\[2J$/,
    /\uFFFD$/,
  ])
  t.match((await files('ls', 'fig', '-o', 'wide')).stdout, /GROUP +BYTES +MODIFIED AT.*\n.* 2048 +\d{4}-/s)
  t.equal((await files('ls', 'fig', '-q', '--filter', 'type=directory')).stdout, 'docs\n')
  t.match(await files('ls', 'fig', '--limit', '2'), {
    stdout: /docs\n.*link -> docs\n$/,
    stderr: /There are more entries\. List them with --limit 20\./,
  })
  const list = JSON.parse((await files('ls', 'fig', '--json')).stdout)
  t.match(list, { path: home, isComplete: true, entries: { length: 5 } })
  t.match(list.entries.at(-1), { name: '\uFFFD', nameBase64: '/w==' })
  t.match((await files('ls', 'fig', 'notes.md', '-q')).stdout, 'notes.md\n', 'the entry itself')
  t.match(await files('ls', 'fig', 'none'), { code: 5, stderr: /none: no such file or directory\./ })
  t.match(await files('ls', 'plum'), { code: 5, stderr: /plum/ })
})

t.test('ls reads further pages', async (t) => {
  mkdirSync(inHome('many'))
  for (let index = 0; index < 1005; index++) writeFileSync(inHome(`many/${index}`), '')
  coordinator.giveFiles('fig')
  t.equal((await files('ls', 'fig', 'many', '-q')).stdout.split('\n').length, 1006)
  t.equal((await files('ls', 'fig', 'many', '-q', '--limit', '1001')).stdout.split('\n').length, 1002)
})

t.test('stat shows the attributes', async (t) => {
  const { stdout } = await files('stat', 'fig', 'notes.md')
  t.match(
    stdout,
    `path      ${inHome('notes.md')}\nname      notes.md\ntype      file\nsize      2048 (2.00 KiB)\n`,
  )
  t.match(stdout, 'mode      0640 -rw-r-----\n')
  t.match(JSON.parse((await files('stat', 'fig', 'link', '--json')).stdout), {
    path: inHome('link'),
    entry: { type: 'symlink', target: 'docs', targetType: 'directory' },
  })
})

t.test('mkdir creates directories', async (t) => {
  t.same(await files('mkdir', 'fig', 'a'), { code: 0, stdout: '', stderr: `${inHome('a')}: created\n` })
  t.match(await files('mkdir', 'fig', 'a', 'b'), {
    code: 1,
    stderr: /exists already.*\(path_exists\)\n.*b: created/s,
  })
  t.match(await files('mkdir', 'fig', 'c/d'), { code: 5, stderr: /c does not exist/ })
  t.match(JSON.parse((await files('mkdir', '-p', 'fig', 'c/d', '--json')).stdout), { path: inHome('c/d') })
})

t.test('mv moves into a directory, and replaces only with -f', async (t) => {
  for (const name of ['one', 'two', 'three']) writeFileSync(inHome(name), name)
  t.match(await files('mv', 'fig', 'one', 'renamed'), {
    code: 0,
    stderr: `${inHome('one')}: moved to ${inHome('renamed')}`,
  })
  t.match(await files('mv', '-q', 'fig', 'renamed', 'two', 'link/'), { code: 0, stderr: /^$/ })
  t.equal(readFileSync(inHome('docs/two'), 'utf8'), 'two')
  t.match(await files('mv', 'fig', 'three', 'docs/two'), {
    code: 1,
    stderr: /exists already.*\(path_exists\)/,
  })
  t.equal((await files('mv', '-f', 'fig', 'three', 'docs/two')).code, 0)
  t.equal(readFileSync(inHome('docs/two'), 'utf8'), 'three')
  t.match(await files('mv', 'fig', 'docs/two', 'a/', '--json'), { code: 0, stdout: inHome('a/two') })
  t.match(await files('mv', 'fig', 'a/two', 'b/two/'), {
    code: 5,
    stderr: /b\/two\/ is not a directory of fig/,
  })
  t.match(await files('mv', 'fig', 'a/two'), { code: 2, stderr: /The destination is missing/ })
})

t.test('rm removes files, and directories with -r', async (t) => {
  t.match(await files('rm', 'fig', 'many'), {
    code: 1,
    stderr: 'box: many is not empty. Remove it with its content with -r. (directory_not_empty)\n',
  })
  t.match(await files('rm', '-r', 'fig', 'many', 'none', 'link'), {
    code: 5,
    stderr: /many: removed\n.*none.*\n.*link: removed\n/,
  })
  t.notOk(existsSync(inHome('many')))
  t.ok(existsSync(inHome('docs/renamed')), 'the target of a link stays')
  t.match(await files('rm', '-f', 'fig', 'none'), { code: 0, stderr: 'none: no such file\n' })
  t.match(await files('rm', '-rf', 'fig', '/'), { code: 1, stderr: /\(permission_denied\)/ })
})
