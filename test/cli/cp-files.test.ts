// box cp of single files: atomic replacement, directories as destinations, pipes, interruptions and errors.
import { chmod, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({})
const cp = (from: string, to?: string, options: BoxOptions = {}) =>
  runBox(coordinator, ['cp', from, ...(to === undefined ? [] : [to])], { cwd: localDir, ...options })
const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 251))

t.test('copies a file up and down byte for byte, with its mode and modification time', async (t) => {
  await writeFile(join(localDir, 'tool'), bytes)
  await chmod(join(localDir, 'tool'), 0o750)
  await utimes(join(localDir, 'tool'), 1_500_000_000, 1_500_000_000.25)
  t.same(await cp('tool', 'fig:'), { code: 0, stdout: '', stderr: '' })
  t.same(await readFile(join(homeDir, 'tool')), bytes)
  t.equal((await stat(join(homeDir, 'tool'))).mode & 0o777, 0o750)
  t.same(await cp('fig:tool', 'back'), { code: 0, stdout: '', stderr: '' })
  t.same(await readFile(join(localDir, 'back')), bytes)
  for (const path of [join(homeDir, 'tool'), join(localDir, 'back')]) {
    const { mode, mtimeMs } = await stat(path)
    t.equal(mode & 0o7777, 0o750, path)
    t.equal(mtimeMs, 1_500_000_000_250, path)
  }
})

t.test('a downloaded file follows the umask, and never gets a set-user-ID bit', async (t) => {
  await writeFile(join(homeDir, 'setuid'), 'x')
  await chmod(join(homeDir, 'setuid'), 0o6777)
  const umask = process.umask(0o027)
  t.teardown(() => process.umask(umask))
  t.match(await cp('fig:setuid', 'setuid'), { code: 0 })
  t.equal((await stat(join(localDir, 'setuid'))).mode & 0o7777, 0o750)
})

t.test('copies an empty file', async (t) => {
  await writeFile(join(localDir, 'empty'), '')
  await cp('empty', 'fig:nothing')
  t.match(await cp('fig:nothing', 'nothing'), { code: 0 })
  t.equal((await stat(join(localDir, 'nothing'))).size, 0)
})

t.test('copies a file into a destination that is a directory', async (t) => {
  await writeFile(join(localDir, 'a:b'), 'colon')
  await mkdir(join(homeDir, 'work'))
  coordinator.giveFiles('fig')
  t.match(await cp('./a:b', 'fig:work'), { code: 0 })
  t.equal(await readFile(join(homeDir, 'work', 'a:b'), 'utf8'), 'colon')
  await mkdir(join(localDir, 'inbox'))
  t.match(await cp('fig:work/a:b', 'inbox'), { code: 0 })
  t.equal(await readFile(join(localDir, 'inbox', 'a:b'), 'utf8'), 'colon')
})

t.test('copies from stdin and to stdout', async (t) => {
  t.match(await cp('-', 'fig:piped', { stdin: 'through' }), { code: 0 })
  t.match(await cp('fig:piped', '-'), { code: 0, stdout: 'through', stderr: '' })
  t.match(await cp('-', 'fig:', { stdin: 'x' }), { code: 2, stderr: /stdin has no file name/ })
})

t.test('a file that is too large for one download is read in ranges', async (t) => {
  const ranges: unknown[] = []
  const handleRange = (start: number, end: number, size = bytes.length) =>
    coordinator.failNext('GET /v1/box/fig/download', (response, { headers }) => {
      ranges.push(headers.range, headers['if-range'])
      response
        .writeHead(206, {
          'content-range': `bytes ${start}-${end}/${size}`,
          'x-service-path': '/h',
          etag: '"1"',
        })
        .end(bytes.subarray(start, end + 1))
    })
  const refuse = () =>
    coordinator.respondNext('GET /v1/box/fig/download', 413, edgeErrorBody(new ApiError('payload_too_large')))
  const first = `bytes=0-${LIMITS.transferBytes - 1}`
  refuse()
  handleRange(0, 99_999)
  handleRange(100_000, 299_999)
  t.same(await cp('fig:data', 'in-ranges'), { code: 0, stdout: '', stderr: '' })
  t.same(await readFile(join(localDir, 'in-ranges')), bytes)
  t.same(ranges, [first, undefined, 'bytes=100000-299999', '"1"'])
  refuse()
  handleRange(0, 99_999)
  handleRange(100_000, 299_999, bytes.length + 1)
  t.match(await cp('fig:data', 'changed'), {
    code: 1,
    stderr: /fig:data changed during the copy\. Copy it again/,
  })
  t.notOk((await readdir(localDir)).includes('changed'))
})

t.test('a download that ends early keeps the old file and leaves no temporary file', async (t) => {
  const dir = join(localDir, 'truncated')
  await mkdir(dir)
  await writeFile(join(dir, 'file'), 'old')
  coordinator.failNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'content-length': 1_000_000, 'x-service-path': '/home/file' })
    response.write('half', () => response.destroy())
  })
  t.match(await cp('fig:file', 'truncated/file'), {
    code: 3,
    stderr: 'box: The transfer was interrupted. Run the command again.\n',
  })
  t.same(await readdir(dir), ['file'])
  t.equal(await readFile(join(dir, 'file'), 'utf8'), 'old')
})

t.test('Ctrl-C during a download leaves no temporary file', async (t) => {
  const dir = join(localDir, 'interrupted')
  await mkdir(dir)
  const result = await cp('fig:file', 'interrupted/file', {
    onSpawn: (child) =>
      coordinator.failNext('GET /v1/box/fig/download', (response) => {
        response.writeHead(200, { 'content-length': 1_000_000, 'x-service-path': '/home/file' })
        response.write('half', async () => {
          while ((await readdir(dir)).length === 0) await new Promise(setImmediate)
          child.kill('SIGINT')
        })
      }),
  })
  t.same(result, { code: 130, stdout: '', stderr: '' })
  t.same(await readdir(dir), [])
})

t.test('a download to a symbolic link replaces its target and keeps the mode', async (t) => {
  await writeFile(join(localDir, 'real'), 'old', { mode: 0o600 })
  await symlink('real', join(localDir, 'link'))
  await writeFile(join(homeDir, 'new'), 'new')
  coordinator.giveFiles('fig')
  await cp('fig:new', 'link')
  t.equal(await readFile(join(localDir, 'real'), 'utf8'), 'new')
  t.equal((await stat(join(localDir, 'real'))).mode & 0o777, 0o600)
})

t.test('an upload stops at an early error response, and is repeated after a 429', async (t) => {
  await writeFile(join(localDir, 'large'), Buffer.alloc(32 * 1024 * 1024, 1))
  coordinator.failNext('PUT /v1/box/fig/upload', (response) => {
    response
      .writeHead(403)
      .end(JSON.stringify({ ok: false, error: { code: 'permission_denied', message: 'No.' } }))
  })
  t.match(await cp('large', 'fig:large'), { code: 1, stderr: 'box: fig: No. (permission_denied)\n' })
  coordinator.failNext('PUT /v1/box/fig/upload', (response) => {
    response
      .writeHead(429, { 'retry-after': '0' })
      .end('{"ok":false,"error":{"code":"rate_limited","message":""}}')
  })
  t.match(await cp('large', 'fig:large'), { code: 0 })
  t.equal((await stat(join(homeDir, 'large'))).size, 32 * 1024 * 1024)
})

t.test('an error names the path and the reason', async (t) => {
  t.match(await cp('missing', 'fig:'), {
    code: 5,
    stderr: 'box: missing: no such file or directory on this machine.\n',
  })
  t.match(await cp('fig:missing', '.'), {
    code: 5,
    stderr: 'box: missing: no such file or directory on fig.\n',
  })
  t.match(await cp('tool', 'fig:no-such-dir/x'), {
    code: 5,
    stderr: 'box: fig: the directory no-such-dir does not exist. --mkpath creates it.\n',
  })
  t.match(await cp('tool', 'fig:/no-such-dir/x'), {
    code: 5,
    stderr:
      /^box: fig: the directory \/no-such-dir does not exist\. Boxes write below their home .* such as fig:x\./,
  })
  await writeFile(join(homeDir, 'regular'), '')
  coordinator.giveFiles('fig')
  t.match(await cp('tool', 'fig:regular/x'), { code: 5, stderr: 'box: fig: regular is not a directory.\n' })
  t.match(await cp('plum:x', '.'), { code: 5, stderr: /No such box: 'plum'/ })
  t.match(await cp('fig:tool', 'no-such-dir/x'), {
    code: 5,
    stderr: 'box: no-such-dir: no such directory on this machine. --mkpath creates it.\n',
  })
  t.match(await cp('here', 'there'), { code: 2, stderr: /must be on a box: BOX:PATH/ })
  t.match(await cp('tool'), { code: 2, stderr: /The destination is missing/ })
})

t.test(
  'an error about a file without read permission names the file',
  { skip: process.getuid?.() === 0 && 'root can read every file' },
  async (t) => {
    await mkdir(join(localDir, 'private'))
    await writeFile(join(localDir, 'private', 'secret'), 'x', { mode: 0o000 })
    t.match(await cp('private/secret', 'fig:'), {
      code: 1,
      stderr: 'box: private/secret: permission denied (this machine).\n',
    })
    t.match(await cp('private', 'fig:'), {
      code: 1,
      stderr: /private\/secret: permission denied \(this machine\)\.\n$/,
    })
  },
)

t.test('wakes a suspended box', async (t) => {
  t.equal((await runBox(coordinator, ['suspend', 'fig'])).code, 0)
  t.equal((await cp(import.meta.filename, 'fig:copy')).code, 0)
  t.match(await coordinator.findBox('fig'), { observedState: 'running' })
})
