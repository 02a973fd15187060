// GET and PUT /files: content round-trips byte for byte, and the response has the real path.
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { query, readError, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const MiB = 1024 * 1024
const read = (path: string) => fetch(`${url}/files${query(path)}`)
const put = (body: unknown) =>
  fetch(`${url}/files`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

t.test('writes and reads text, including a byte order mark', async (t) => {
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

t.test('writes and reads binary content as base64', async (t) => {
  const bytes = Buffer.from([0, 0xff, 0xfe, 10])
  const content = bytes.toString('base64')
  await put({ path: 'bytes', content, encoding: 'base64' })
  t.same(await readFile(join(home, 'bytes')), bytes)
  t.match(await (await read('bytes')).json(), { content, encoding: 'base64', size: 4 })
})

t.test('accepts base64 with line breaks', async (t) => {
  await put({ path: 'lines', content: 'aGVs\nbG8=\n', encoding: 'base64' })
  t.equal(await readFile(join(home, 'lines'), 'utf8'), 'hello')
})

t.test('writes and reads an empty file', async (t) => {
  t.match(await (await put({ path: 'empty', content: '' })).json(), { size: 0 })
  t.match(await (await read('empty')).json(), { size: 0, content: '', encoding: 'utf8' })
})

t.test('reads a file in /proc, whose size is reported as 0', async (t) => {
  const { content, size } = (await (await read('/proc/self/status')).json()) as {
    content: string
    size: number
  }
  t.match(content, /^Name:/)
  t.equal(size, content.length)
})

t.test('responds with the real path of a path through a symlink', async (t) => {
  await mkdir(join(home, 'real'))
  await symlink('real', join(home, 'linked'))
  const path = join(home, 'real/a')
  t.match(await (await put({ path: 'linked/a', content: 'x' })).json(), { path })
  t.match(await (await read('linked/../real/a')).json(), { path })
})

t.test('reads and writes exactly 1 MiB, and rejects one byte more', async (t) => {
  const content = 'x'.repeat(MiB)
  t.equal((await put({ path: 'limit', content })).status, 200)
  t.match(await (await read('limit')).json(), { size: MiB })
  t.match(await readError(await put({ path: 'too-large', content: `${content}x` })), {
    status: 413,
    code: 'payload_too_large',
    message: /upload/,
  })
  await writeFile(join(home, 'too-large'), `${content}x`)
  const error = await readError(await read('too-large'))
  t.match(error, { status: 413, code: 'payload_too_large', message: /\/download/ })
})

t.test('accepts 1 MiB of content in which every byte is escaped in JSON', async (t) => {
  t.equal((await put({ path: 'zeros', content: '\0'.repeat(MiB) })).status, 200)
})

t.test('rejects invalid requests and writes nothing', async (t) => {
  const bodies = [
    { path: 'bad' },
    { path: 'bad', content: 7 },
    { path: 'bad', content: 'x', encoding: 'latin1' },
    { path: 'bad', content: 'x', mode: '999' },
    { path: 'bad', content: 'x', mode: 'rwx' },
    { path: 'bad', content: 'not base64!', encoding: 'base64' },
    { path: 'bad', content: 'abc', encoding: 'base64' },
    { path: 'bad', content: 'unpaired \ud83c' },
  ]
  for (const body of bodies)
    t.match(await readError(await put(body)), { status: 400, code: 'invalid_request' })
  await t.rejects(stat(join(home, 'bad')))
})
