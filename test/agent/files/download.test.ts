// A file download is complete and unchanged or fails, and memory use does not depend on the file size.
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { appendFile, chmod, symlink, truncate, utimes, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CHUNK_BYTES, openForReading, readChunks, SMALL_FILE_BYTES } from '../../../agent/files/read.ts'
import { DIAL_BACK_HEADER } from '../../../shared/protocol.ts'
import { callRoute } from '../../support/agent-routes.ts'
import { measureReferencedBytes } from '../../support/heap.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { NO_LIMITS, query, readError, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const download = (path: string) => fetch(`${url}/download${query(path)}`)
const pattern = (size: number) =>
  Buffer.alloc(
    size,
    Uint8Array.from({ length: 251 }, (_, n) => n),
  )

for (const size of [0, 1, SMALL_FILE_BYTES + 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7]) {
  t.test(`downloads a file of ${size} bytes`, async (t) => {
    const bytes = pattern(size)
    await writeFile(join(home, 'file'), bytes)
    const response = await download('file')
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'application/octet-stream',
      'content-length': String(size),
      'x-service-path': join(home, 'file'),
    })
    t.notOk(response.headers.get('x-service-content'))
    t.ok(bytes.equals(Buffer.from(await response.arrayBuffer())), 'the content is unchanged')
  })
}

t.test('sends the real path in a header, also with non-ASCII characters', async (t) => {
  const name = 'grüße 🌳 100% '
  await writeFile(join(home, name), 'x')
  await symlink(name, join(home, 'link'))
  const path = (await download('link')).headers.get('x-service-path') ?? ''
  t.match(path, /^[ -~]+$/)
  t.equal(decodeURIComponent(path), join(home, name))
})

t.test('declares the actual length of a file in /proc', async (t) => {
  const response = await download('/proc/self/status')
  const text = await response.text()
  t.match(text, /^Name:/)
  t.equal(response.headers.get('content-length'), String(text.length))
})

t.test('rejects a file of more than 1 GiB without reading it, but sends ranges of it', async (t) => {
  const size = 1024 ** 3 + 1
  await writeFile(join(home, 'huge'), 'start')
  await truncate(join(home, 'huge'), size)
  t.match(await readError(await download('huge')), { status: 413, code: 'payload_too_large' })
  const part = await fetch(`${url}/download${query('huge')}`, { headers: { range: 'bytes=1-4' } })
  t.equal(part.status, 206)
  t.equal(part.headers.get('content-range'), `bytes 1-4/${size}`)
  t.equal(await part.text(), 'tart')
})

t.test('sends the mode and the modification time in headers', async (t) => {
  for (const [size, name] of [
    [10, 'tool'],
    [SMALL_FILE_BYTES + 1, 'large-tool'],
  ] as const) {
    await writeFile(join(home, name), pattern(size))
    await chmod(join(home, name), 0o750)
    await utimes(join(home, name), 1_500_000_000.25, 1_500_000_000.25)
    const response = await download(name)
    t.match(Object.fromEntries(response.headers), {
      'x-service-mode': '0750',
      'x-service-mtime': '1500000000.25',
    })
    await response.body?.cancel()
  }
})

t.test('truncates a file that grows, and fails on a file that shrinks', async (t) => {
  const path = join(home, 'changing')
  const size = 8 * CHUNK_BYTES
  const openChunks = async (t: Test) => {
    await writeFile(path, pattern(size))
    const { handle } = await openForReading(path, NO_LIMITS)
    t.teardown(() => handle.close())
    return readChunks(handle, size, path)
  }
  const grown = await openChunks(t)
  await appendFile(path, 'more')
  t.ok(pattern(size).equals(await collect(grown)), 'appended bytes are not sent')
  const shrunk = await openChunks(t)
  await truncate(path, size - 1)
  await t.rejects(collect(shrunk), /became shorter/)
})

/** Several times what a stalled download may buffer. */
const CONTROL_BYTES = 128 * 1024 * 1024

/** A client that stops reading after the response headers. */
async function startStalledDownload(path: string): Promise<IncomingMessage> {
  const request = get(`${url}/download${query(path)}`)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  return response.pause()
}

t.test('aborts the connection when the file shrinks during the download', async (t) => {
  const path = join(home, 'shrinking')
  await writeFile(path, '')
  await truncate(path, 512 * CHUNK_BYTES)
  const response = await startStalledDownload('shrinking')
  await truncate(path, 0)
  await t.rejects(async () => {
    for await (const _ of response);
  })
})

t.test('buffers only a few chunks for a stalled client, and recovers after it disconnects', async (t) => {
  await writeFile(join(home, 'sparse'), '')
  await truncate(join(home, 'sparse'), 1024 ** 3)
  await writeFile(join(home, 'control'), '')
  await truncate(join(home, 'control'), CONTROL_BYTES)
  const before = await measureReferencedBytes()
  const response = await startStalledDownload('sparse')
  // While a client reads this file, a server without back-pressure would read as much of the other one.
  let received = 0
  for await (const chunk of (await download('control')).body ?? []) received += chunk.length
  t.equal(received, CONTROL_BYTES)
  const growth = (await measureReferencedBytes()) - before
  t.ok(growth < 32 * 1024 * 1024, `${growth} bytes are buffered`)
  response.destroy()
  t.equal((await download('file')).status, 200, 'other requests are served')
})

t.test('downloads over a dial-back connection', async (t) => {
  const sent: { id: string; headers: Record<string, string>; bytes: Promise<Buffer> }[] = []
  const mayRead = Promise.withResolvers<void>()
  const server = await serveFiles(t, {
    transferDialer: {
      fetch: async () => t.fail() as never,
      send: async (id, headers, body) => {
        const bytes = mayRead.promise.then(() => collect(body))
        sent.push({ id, headers, bytes })
        await bytes
      },
    },
  })
  const headers = { [DIAL_BACK_HEADER]: 'one' }
  const request = (path: string) => callRoute(server.router, { path: `/download${query(path)}`, headers })
  const big = pattern(SMALL_FILE_BYTES + 1)
  await writeFile(join(server.home, 'big'), big)
  await writeFile(join(server.home, 'small'), 'small')

  t.test('sends a file over the connection, without delaying the response', async (t) => {
    for (const [name, bytes] of [
      ['small', Buffer.from('small')],
      ['big', big],
    ] as const) {
      t.same(await request(name), { status: 200, text: '' })
      const transfer = sent.pop()
      if (transfer === undefined) return t.fail('no transfer was sent')
      t.equal(transfer.id, 'one')
      t.match(transfer.headers, {
        'content-type': 'application/octet-stream',
        'content-length': String(bytes.length),
        'x-service-path': join(server.home, name),
      })
      mayRead.resolve()
      t.ok(bytes.equals(await transfer.bytes))
    }
  })
  t.test('sends a directory of any size over the connection', async (t) => {
    t.same(await request('.'), { status: 200, text: '' })
    const transfer = sent.pop()
    t.match(transfer?.headers, { 'content-type': 'application/x-tar', 'x-service-content': 'directory' })
    t.ok(((await transfer?.bytes)?.length ?? 0) > big.length)
  })
  t.test('sends an error in the response', async (t) => {
    const { status, text } = await request('missing')
    t.match({ status, ...JSON.parse(text) }, { status: 404, error: { code: 'not_found' } })
    t.same(sent, [])
  })
})

t.test('closes the file when the transfer fails', async (t) => {
  const server = await serveFiles(t, {
    transferDialer: {
      fetch: async () => t.fail() as never,
      send: () => Promise.reject(new Error('refused')),
    },
  })
  await writeFile(join(server.home, 'big'), pattern(SMALL_FILE_BYTES + 1))
  const headers = { [DIAL_BACK_HEADER]: 'one' }
  t.same(await callRoute(server.router, { path: '/download?path=big', headers }), { status: 200, text: '' })
  const big = join(server.home, 'big')
  await waitUntil('the file is closed', () => listOpenFiles().every((path) => path !== big))
})

/** Copies each chunk, because the next one may reuse its memory. */
async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

/** Files that are open in this process, which runs the file routes. */
const listOpenFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return []
    }
  })
