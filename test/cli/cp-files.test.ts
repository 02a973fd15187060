// box cp of single files: under the final name only when whole, into a folder when the destination is one.
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const home = fake.home('fig')
const here = t.testdir({})
const cp = (from: string, to: string, options: BoxOptions = {}) =>
  runBox(fake.url, ['cp', from, to], { cwd: here, ...options })
const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 251))

t.test('up and down, byte for byte, with the mode on the way up', async (t) => {
  await writeFile(join(here, 'tool'), bytes)
  await chmod(join(here, 'tool'), 0o750)
  t.same(await cp('tool', 'fig:'), { code: 0, stdout: '', stderr: '' })
  t.same(await readFile(join(home, 'tool')), bytes)
  t.equal((await stat(join(home, 'tool'))).mode & 0o777, 0o750)
  t.same(await cp('fig:tool', 'back'), { code: 0, stdout: '', stderr: '' })
  t.same(await readFile(join(here, 'back')), bytes)
})

t.test('an empty file', async (t) => {
  await writeFile(join(here, 'empty'), '')
  await cp('empty', 'fig:nothing')
  t.match(await cp('fig:nothing', 'nothing'), { code: 0 })
  t.equal((await stat(join(here, 'nothing'))).size, 0)
})

t.test('a destination that is a folder gets the file inside', async (t) => {
  await writeFile(join(here, 'a:b'), 'colon')
  await mkdir(join(home, 'work'))
  t.match(await cp('./a:b', 'fig:work'), { code: 0 })
  t.equal(await readFile(join(home, 'work', 'a:b'), 'utf8'), 'colon')
  await mkdir(join(here, 'inbox'))
  t.match(await cp('fig:work/a:b', 'inbox'), { code: 0 })
  t.equal(await readFile(join(here, 'inbox', 'a:b'), 'utf8'), 'colon')
})

t.test('pipes', async (t) => {
  t.match(await cp('-', 'fig:piped', { stdin: 'through' }), { code: 0 })
  t.match(await cp('fig:piped', '-'), { code: 0, stdout: 'through', stderr: '' })
  t.match(await cp('-', 'fig:', { stdin: 'x' }), { code: 2, stderr: /stdin has no name/ })
})

t.test('a download that breaks off leaves the old file and nothing else', async (t) => {
  const folder = join(here, 'kept')
  await mkdir(folder)
  await writeFile(join(folder, 'file'), 'old')
  fake.answerNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'content-length': 1_000_000, 'x-service-path': '/home/file' })
    response.write('half', () => response.destroy())
  })
  t.match(await cp('fig:file', 'kept/file'), { code: 3, stderr: /broke off.*Nothing was changed/ })
  t.same(await readdir(folder), ['file'])
  t.equal(await readFile(join(folder, 'file'), 'utf8'), 'old')
})

t.test('Ctrl-C in the middle of a download leaves nothing', async (t) => {
  const folder = join(here, 'interrupted')
  await mkdir(folder)
  const seen = await cp('fig:file', 'interrupted/file', {
    meanwhile: (child) =>
      fake.answerNext('GET /v1/box/fig/download', (response) => {
        response.writeHead(200, { 'content-length': 1_000_000, 'x-service-path': '/home/file' })
        response.write('half', async () => {
          while ((await readdir(folder)).length === 0) await new Promise(setImmediate)
          child.kill('SIGINT')
        })
      }),
  })
  t.same(seen, { code: 130, stdout: '', stderr: '' })
  t.same(await readdir(folder), [])
})

t.test('a link here is written through, and the mode of what is there stays', async (t) => {
  await writeFile(join(here, 'real'), 'old', { mode: 0o600 })
  await symlink('real', join(here, 'link'))
  await writeFile(join(home, 'new'), 'new')
  await cp('fig:new', 'link')
  t.equal(await readFile(join(here, 'real'), 'utf8'), 'new')
  t.equal((await stat(join(here, 'real'))).mode & 0o777, 0o600)
})

t.test('an upload that is refused early ends, and one told to wait is sent again', async (t) => {
  await writeFile(join(here, 'large'), Buffer.alloc(32 * 1024 * 1024, 1))
  fake.answerNext('PUT /v1/box/fig/upload', (response) => {
    response
      .writeHead(403)
      .end(JSON.stringify({ ok: false, error: { code: 'permission_denied', message: 'No.' } }))
  })
  t.match(await cp('large', 'fig:large'), { code: 1, stderr: 'box: No. (permission_denied)\n' })
  fake.answerNext('PUT /v1/box/fig/upload', (response) => {
    response
      .writeHead(429, { 'retry-after': '0' })
      .end('{"ok":false,"error":{"code":"rate_limited","message":""}}')
  })
  t.match(await cp('large', 'fig:large'), { code: 0 })
  t.equal((await stat(join(home, 'large'))).size, 32 * 1024 * 1024)
})

t.test('what cannot be copied says why', async (t) => {
  t.match(await cp('missing', 'fig:'), { code: 5, stderr: /missing: no such file or folder here/ })
  t.match(await cp('fig:missing', '.'), { code: 5, stderr: /missing: no such file.*\(not_found\)/ })
  t.match(await cp('plum:x', '.'), { code: 5, stderr: /no box plum/ })
  t.match(await cp('fig:tool', 'nofolder/x'), { code: 5, stderr: /no such file or directory/ })
  t.match(await cp('here', 'there'), { code: 2, stderr: /NAME:path/ })
  t.match(await cp('fig:a', 'plum:b'), { code: 2, stderr: /copy here first/ })
})
