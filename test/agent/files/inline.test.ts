// Files as JSON: what was written is read back, byte for byte, under its real path.
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { errorOf, query, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const MiB = 1024 * 1024
const read = (path: string) => fetch(`${url}/files${query(path)}`)
const put = (body: unknown) =>
  fetch(`${url}/files`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

t.test('text, with its byte order mark', async (t) => {
  const content = '\uFEFFgrüße 🌳\n'
  const path = join(home, 'text')
  const size = Buffer.byteLength(content)
  t.same(await (await put({ path: 'text', content })).json(), { ok: true, type: 'file.written', path, size })
  await chmod(path, 0o640)
  t.same(await (await read('~/text')).json(), {
    ok: true,
    type: 'file.read',
    path,
    size,
    content,
    encoding: 'utf8',
    mode: '0640',
  })
})

t.test('bytes that are not text', async (t) => {
  const bytes = Buffer.from([0, 0xff, 0xfe, 10])
  const content = bytes.toString('base64')
  await put({ path: 'bytes', content, encoding: 'base64' })
  t.same(await readFile(join(home, 'bytes')), bytes)
  t.match(await (await read('bytes')).json(), { content, encoding: 'base64', size: 4 })
})

t.test('base64 with the line breaks of the base64 command', async (t) => {
  await put({ path: 'lines', content: 'aGVs\nbG8=\n', encoding: 'base64' })
  t.equal(await readFile(join(home, 'lines'), 'utf8'), 'hello')
})

t.test('an empty file', async (t) => {
  t.match(await (await put({ path: 'empty', content: '' })).json(), { size: 0 })
  t.match(await (await read('empty')).json(), { size: 0, content: '', encoding: 'utf8' })
})

t.test('a file of /proc, which claims to be empty', async (t) => {
  const { content, size } = (await (await read('/proc/self/status')).json()) as {
    content: string
    size: number
  }
  t.match(content, /^Name:/)
  t.equal(size, content.length)
})

t.test('the real path, through a link', async (t) => {
  await mkdir(join(home, 'real'))
  await symlink('real', join(home, 'linked'))
  const path = join(home, 'real/a')
  t.match(await (await put({ path: 'linked/a', content: 'x' })).json(), { path })
  t.match(await (await read('linked/../real/a')).json(), { path })
})

t.test('exactly 1 MiB passes both ways, a byte more does not', async (t) => {
  const content = 'x'.repeat(MiB)
  t.equal((await put({ path: 'limit', content })).status, 200)
  t.match(await (await read('limit')).json(), { size: MiB })
  t.match(await errorOf(await put({ path: 'over', content: `${content}x` })), {
    status: 413,
    code: 'payload_too_large',
    message: /upload/,
  })
  await writeFile(join(home, 'over'), `${content}x`)
  const error = await errorOf(await read('over'))
  t.match(error, { status: 413, code: 'payload_too_large', message: /\/download/ })
})

t.test('1 MiB whose every byte is escaped in JSON', async (t) => {
  t.equal((await put({ path: 'zeros', content: '\0'.repeat(MiB) })).status, 200)
})

t.test('requests that mean nothing', async (t) => {
  const bodies = [
    { path: 'bad' },
    { path: 'bad', content: 7 },
    { path: 'bad', content: 'x', encoding: 'latin1' },
    { path: 'bad', content: 'x', mode: '999' },
    { path: 'bad', content: 'x', mode: 'rwx' },
    { path: 'bad', content: 'not base64!', encoding: 'base64' },
    { path: 'bad', content: 'abc', encoding: 'base64' },
    { path: 'bad', content: 'half \ud83c' },
  ]
  for (const body of bodies) t.match(await errorOf(await put(body)), { status: 400, code: 'invalid_request' })
  await t.rejects(stat(join(home, 'bad')))
})
