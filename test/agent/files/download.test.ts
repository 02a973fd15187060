// A file comes down as it is, whole, or the transfer breaks; memory does not follow its size.
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { appendFile, symlink, truncate, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { CHUNK_BYTES, exactStream, openForReading } from '../../../agent/files/read.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import { TRANSFER_HEADER } from '../../../shared/protocol.ts'
import { errorOf, query, serveFiles, until } from './support.ts'

const { home, url } = await serveFiles(t)
const download = (path: string) => fetch(`${url}/download${query(path)}`)
const pattern = (size: number) =>
  Buffer.alloc(
    size,
    Uint8Array.from({ length: 251 }, (_, n) => n),
  )

for (const size of [0, 1, TUNNEL_LIMITS.inlineBodyBytes + 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7]) {
  t.test(`${size} bytes`, async (t) => {
    const bytes = pattern(size)
    await writeFile(join(home, 'file'), bytes)
    const response = await download('file')
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'application/octet-stream',
      'content-length': String(size),
      'x-service-path': join(home, 'file'),
    })
    t.notOk(response.headers.get('x-service-content'))
    t.ok(bytes.equals(Buffer.from(await response.arrayBuffer())), 'byte for byte')
  })
}

t.test('the real path in a header, whatever its letters', async (t) => {
  const name = 'grüße 🌳 100% '
  await writeFile(join(home, name), 'x')
  await symlink(name, join(home, 'link'))
  const path = (await download('link')).headers.get('x-service-path') ?? ''
  t.match(path, /^[ -~]+$/)
  t.equal(decodeURIComponent(path), join(home, name))
})

t.test('a file of /proc has the length it turns out to have', async (t) => {
  const response = await download('/proc/self/status')
  const text = await response.text()
  t.match(text, /^Name:/)
  t.equal(response.headers.get('content-length'), String(text.length))
})

t.test('more than 1 GiB, without reading it', async (t) => {
  await writeFile(join(home, 'huge'), '')
  await truncate(join(home, 'huge'), 1024 ** 3 + 1)
  t.match(await errorOf(await download('huge')), { status: 413, code: 'payload_too_large' })
})

t.test('a file that changes while it is read', async (t) => {
  const path = join(home, 'changing')
  const size = 8 * CHUNK_BYTES
  const opened = async (t: Test) => {
    await writeFile(path, pattern(size))
    const stream = exactStream((await openForReading(path)).handle, size, path)
    t.teardown(() => stream.destroy())
    return stream
  }
  const grown = await opened(t)
  await appendFile(path, 'more')
  t.ok(pattern(size).equals(await buffer(grown)), 'what was added is not sent')
  const shrunk = await opened(t)
  await truncate(path, size - 1)
  await t.rejects(buffer(shrunk), /became shorter/)
})

/** A reader that has stopped after the answer's head. */
async function stalled(path: string): Promise<IncomingMessage> {
  const request = get(`${url}/download${query(path)}`)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  return response.pause()
}

t.test('a shrinking file breaks the connection, it does not end it', async (t) => {
  const path = join(home, 'shrinking')
  await writeFile(path, '')
  await truncate(path, 512 * CHUNK_BYTES)
  const response = await stalled('shrinking')
  await truncate(path, 0)
  await t.rejects(async () => {
    for await (const _ of response);
  })
})

t.test('a reader that has stopped costs a few chunks, and goes away cleanly', async (t) => {
  await writeFile(join(home, 'sparse'), '')
  await truncate(join(home, 'sparse'), 1024 ** 3)
  const held = () => process.memoryUsage().arrayBuffers + process.memoryUsage().external
  const before = held()
  const response = await stalled('sparse')
  // Long enough for a server without back-pressure to read hundreds of MiB.
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setTimeout(resolve, 2))
  t.ok(held() - before < 32 * 1024 * 1024, `${held() - before} bytes are held`)
  response.destroy()
  t.equal((await download('file')).status, 200, 'others are answered')
})

t.test('beside the tunnel', async (t) => {
  const brought: { id: string; headers: Record<string, string>; bytes: Promise<Buffer> }[] = []
  const slow = Promise.withResolvers<void>()
  const served = await serveFiles(t, {
    transfers: {
      fetch: async () => t.fail() as never,
      bring: async (id, headers, body) => {
        const bytes = slow.promise.then(() => collect(body))
        brought.push({ id, headers, bytes })
        await bytes
      },
    },
  })
  const ask = (path: string) =>
    fetch(`${served.url}/download${query(path)}`, { headers: { [TRANSFER_HEADER]: 'one' } })
  const big = pattern(TUNNEL_LIMITS.inlineBodyBytes + 1)
  await writeFile(join(served.home, 'big'), big)
  await writeFile(join(served.home, 'small'), 'small')

  t.test('a small file is in the answer', async (t) => {
    const response = await ask('small')
    t.equal(response.headers.get(TRANSFER_HEADER), null)
    t.equal(await response.text(), 'small')
    t.same(brought, [])
  })
  t.test('a large one is brought, and the answer does not wait for it', async (t) => {
    const response = await ask('big')
    t.equal(response.status, 200)
    t.equal(response.headers.get(TRANSFER_HEADER), 'one')
    t.equal(await response.text(), '')
    const [transfer] = brought
    if (transfer === undefined) return t.fail('nothing was brought')
    t.equal(transfer.id, 'one')
    t.same(transfer.headers, {
      'content-type': 'application/octet-stream',
      'content-length': String(big.length),
      'x-service-path': join(served.home, 'big'),
    })
    slow.resolve()
    t.ok(big.equals(await transfer.bytes))
  })
  t.test('a folder is brought however small it is', async (t) => {
    const response = await ask('.')
    t.equal(response.headers.get(TRANSFER_HEADER), 'one')
    const transfer = brought[1]
    t.match(transfer?.headers, { 'content-type': 'application/x-tar', 'x-service-content': 'directory' })
    t.ok(((await transfer?.bytes)?.length ?? 0) > big.length)
  })
  t.test('an error is answered, not brought', async (t) => {
    t.match(await errorOf(await ask('nothing')), { status: 404, code: 'not_found' })
    t.equal(brought.length, 2)
  })
})

t.test('a transfer that fails closes the file', async (t) => {
  const served = await serveFiles(t, {
    transfers: {
      fetch: async () => t.fail() as never,
      bring: () => Promise.reject(new Error('refused')),
    },
  })
  await writeFile(join(served.home, 'big'), pattern(TUNNEL_LIMITS.inlineBodyBytes + 1))
  const headers = { [TRANSFER_HEADER]: 'one' }
  t.equal((await fetch(`${served.url}/download?path=big`, { headers })).status, 200)
  const big = join(served.home, 'big')
  await until(() => openFiles().every((path) => path !== big))
})

/** The chunks are copied: the next one may stand in the same memory. */
async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

/** Of this process, which is the agent here. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return []
    }
  })
