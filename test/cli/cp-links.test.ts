// box cp of links and times in a directory, and archives from a box that is hostile.
import { execFileSync } from 'node:child_process'
import {
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createPadding, END_OF_ARCHIVE, encodeTarHeader, type TarEntry } from '../../shared/tar.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({ 'outside.txt': 'mine' })
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })
const SUCCESS = { code: 0, stdout: '', stderr: '' }

function createTree(dir: string): void {
  mkdirSync(join(dir, 'sub'), { recursive: true })
  writeFileSync(join(dir, 'first'), 'shared')
  linkSync(join(dir, 'first'), join(dir, 'sub', 'second'))
  symlinkSync('first', join(dir, 'link'))
  lutimesSync(join(dir, 'link'), 978_307_200, 978_307_200)
  utimesSync(join(dir, 'sub'), 1_046_649_600, 1_046_649_600)
  utimesSync(dir, 1_078_272_000, 1_078_272_000)
}

const getTimes = (dir: string) => ['', 'sub', 'link'].map((name) => lstatSync(join(dir, name)).mtimeMs / 1000)

t.test('keeps hard links, and the times of directories and links', async (t) => {
  createTree(join(localDir, 'tree'))
  const times = [1_078_272_000, 1_046_649_600, 978_307_200]
  t.same(await cp('tree', 'fig:copy'), SUCCESS)
  t.same(await cp('fig:copy', 'back'), SUCCESS)
  mkdirSync(join(homeDir, 'several'))
  coordinator.giveFiles('fig')
  t.same(await cp('tree/first', 'tree/sub', 'fig:several'), SUCCESS)
  for (const dir of [join(homeDir, 'copy'), join(localDir, 'back')]) {
    t.same(getTimes(dir), times, dir)
    t.equal(statSync(join(dir, 'first')).ino, statSync(join(dir, 'sub', 'second')).ino, dir)
    t.equal(statSync(join(dir, 'first')).nlink, 2)
  }
  t.equal(statSync(join(homeDir, 'several/first')).ino, statSync(join(homeDir, 'several/sub/second')).ino)
})

t.test('a file whose other names are elsewhere is copied', async (t) => {
  mkdirSync(join(localDir, 'part'))
  linkSync(join(localDir, 'outside.txt'), join(localDir, 'part', 'inside'))
  t.same(await cp('part', 'fig:part'), SUCCESS)
  t.equal(readFileSync(join(homeDir, 'part', 'inside'), 'utf8'), 'mine')
  t.same(await cp('fig:part', 'part-back'), SUCCESS)
  t.equal(statSync(join(localDir, 'part-back', 'inside')).nlink, 1)
})

const encode = (
  name: string,
  type: TarEntry['type'],
  fields: Partial<TarEntry> & { content?: string } = {},
) => {
  const content = Buffer.from(fields.content ?? '')
  const entry = { size: content.length, mode: 0o755, uid: 0, gid: 0, mtime: 0, ...fields }
  return Buffer.concat([
    encodeTarHeader({ ...entry, name: Buffer.from(name), type }),
    content,
    createPadding(content.length),
  ])
}
const link = (name: string, target: string) => encode(name, 'link', { target: Buffer.from(target) })
const symlink = (name: string, target: string) => encode(name, 'symlink', { target: Buffer.from(target) })
const file = (name: string, content = 'evil') => encode(name, 'file', { content })
const TOP = encode('top', 'directory')

function respondWithArchive(entries: readonly Buffer[]): void {
  coordinator.failNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/top' })
    response.end(Buffer.concat([...entries, END_OF_ARCHIVE]))
  })
}

const outside = join(localDir, 'outside.txt')
const HOSTILE: Record<string, Buffer[]> = {
  'a hard link to a parent directory': [TOP, link('top/a', 'top/../../outside.txt'), file('top/a')],
  'a hard link to an absolute path': [TOP, link('top/a', outside)],
  'a hard link through a symbolic link': [
    TOP,
    symlink('top/s', localDir),
    link('top/a', 'top/s/outside.txt'),
  ],
  'a hard link to a symbolic link, and a file': [
    TOP,
    symlink('top/s', outside),
    link('top/a', 'top/s'),
    file('top/a'),
  ],
  'a hard link to a directory': [TOP, link('top/a', 'top')],
  'a hard link to nothing': [TOP, link('top/a', 'top/missing')],
  'a file through a symbolic link': [TOP, symlink('top/s', localDir), file('top/s/outside.txt')],
  'a file in place of a symbolic link': [TOP, symlink('top/s', outside), file('top/s')],
  'a directory in place of a symbolic link': [TOP, symlink('top/s', localDir), encode('top/s', 'directory')],
  'a symbolic link in place of the top': [TOP, symlink('top', localDir)],
  'a symbolic link below a symbolic link': [TOP, symlink('top/s', localDir), symlink('top/s/x', 'y')],
  'a symbolic link that is the top': [symlink('top', localDir), file('top/outside.txt')],
  'two files of one name': [TOP, file('top/a'), file('top/./a')],
  'a file and a hard link of one name': [TOP, file('top/a'), file('top/b'), link('top/a', 'top/b')],
  'an entry beside the top': [TOP, file('outside.txt')],
  'an absolute path': [TOP, file(outside)],
  'a parent directory': [TOP, file('top/../../outside.txt')],
  'a long name': [TOP, file(`top/${'x/'.repeat(3000)}a`)],
  'a huge header': [TOP, file(`top/${'x'.repeat(5 * 1024 * 1024)}`)],
  'no directory': [file('top')],
  nothing: [],
  'a file that is cut off': [TOP, encode('top/a', 'file', { size: 100_000 })],
  'a size that is too large': [TOP, encode('top/a', 'file', { size: 2 ** 47 })],
}

for (const [name, entries] of Object.entries(HOSTILE))
  t.test(`refuses an archive with ${name}`, async (t) => {
    respondWithArchive(entries)
    const before = readdirSync(localDir)
    const { code, stderr } = await cp('fig:top', 'received')
    t.equal(code, 1, stderr)
    t.match(stderr, /^box: [^\n]*\.\n$/, 'one line')
    t.same(readdirSync(localDir), before)
    t.equal(readFileSync(outside, 'utf8'), 'mine')
  })

t.test('accepts what the tar of a box may send', async (t) => {
  respondWithArchive([
    encode('.', 'directory'),
    file('./a', 'content'),
    symlink('./s', 'a'),
    link('./hard-link-to-s', './s'),
    link('./hard-link-to-a', './a'),
    file('./implied/parent', 'x'),
  ])
  t.same(await cp('fig:top', 'accepted'), SUCCESS)
  const dir = join(localDir, 'accepted')
  t.equal(readlinkSync(join(dir, 'hard-link-to-s')), 'a')
  t.equal(statSync(join(dir, 'hard-link-to-a')).ino, statSync(join(dir, 'a')).ino)
  t.equal(readFileSync(join(dir, 'implied', 'parent'), 'utf8'), 'x')
  for (const format of ['gnu', 'pax', 'ustar']) {
    const tar = execFileSync('tar', ['-C', join(localDir, 'tree'), `--format=${format}`, '-c', '.'])
    respondWithArchive([tar])
    t.same(await cp('fig:top', format), SUCCESS)
    t.equal(statSync(join(localDir, format, 'sub/second')).nlink, 2)
  }
})
