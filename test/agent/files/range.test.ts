// Downloads with HEAD, Range and ETag.
import { appendFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { CHUNK_BYTES } from '../../../agent/files/read.ts'
import { query, readError, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const download = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${url}/download${query(path)}`, { method, headers })

for (const [name, size] of [
  ['small', 1000],
  ['large', 3 * CHUNK_BYTES + 7],
] as const)
  t.test(`a ${name} file`, async (t) => {
    const content = Buffer.from(Array.from({ length: size }, (_, i) => i % 251))
    await writeFile(join(home, name), content)
    const complete = await download(name)
    const etag = complete.headers.get('etag') ?? ''
    t.match(etag, /^"[0-9a-f-]+"$/)
    t.equal(complete.headers.get('accept-ranges'), 'bytes')
    t.ok(content.equals(Buffer.from(await complete.arrayBuffer())))

    const head = await download(name, {}, 'HEAD')
    t.equal(head.status, 200)
    t.equal(head.headers.get('content-length'), String(size))
    t.equal(head.headers.get('etag'), etag)
    t.equal(await head.text(), '')

    for (const [start, end] of [
      [0, 0],
      [7, size - 8],
      [size - 1, size - 1],
    ] as const) {
      const expected = content.subarray(start, end + 1)
      const headers = { range: `bytes=${start}-${end}`, 'if-range': etag }
      const part = await download(name, headers)
      t.equal(part.status, 206)
      t.equal(part.headers.get('content-range'), `bytes ${start}-${end}/${size}`)
      t.equal(part.headers.get('content-length'), String(expected.length))
      t.ok(expected.equals(Buffer.from(await part.arrayBuffer())), `bytes ${start} to ${end}`)
    }
    const outside = await download(name, { range: `bytes=${size}-` })
    t.match(await readError(outside), { status: 416, code: 'range_not_satisfiable', size })

    const unchanged = await download(name, { 'if-none-match': etag })
    t.equal(unchanged.status, 304)
    t.equal(unchanged.headers.get('etag'), etag)
    t.equal(await unchanged.text(), '')

    await appendFile(join(home, name), 'x')
    const appended = await download(name, { 'if-none-match': etag, range: 'bytes=0-1', 'if-range': etag })
    t.equal(appended.status, 200, 'a file that has changed is sent completely')
    t.equal((await appended.arrayBuffer()).byteLength, size + 1)
    await writeFile(join(home, 'replacement'), Buffer.concat([content, Buffer.from('x')]))
    await rename(join(home, 'replacement'), join(home, name))
    t.not((await download(name, {}, 'HEAD')).headers.get('etag'), appended.headers.get('etag'), 'replaced')
  })

t.test('a file in /proc has no entity tag, and a directory ignores Range', async (t) => {
  const status = await download('/proc/self/status', { 'if-none-match': '*' })
  t.equal(status.status, 304, 'If-None-Match: * matches every file')
  t.equal((await download('/proc/self/status')).headers.get('etag'), null)
  const archive = await download('.', { range: 'bytes=0-1' })
  t.equal(archive.status, 200)
  t.ok((await buffer(archive.body ?? new ReadableStream())).length > 2)
  const head = await download('.', {}, 'HEAD')
  t.match(Object.fromEntries(head.headers), {
    'content-type': 'application/x-tar',
    'x-service-content': 'directory',
  })
  t.equal(head.headers.get('content-length'), null)
})
