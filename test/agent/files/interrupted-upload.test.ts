// An upload that is interrupted or has the wrong length leaves the old file unchanged and no temporary file.
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { DIAL_BACK_HEADER, TRANSFER_LENGTH_HEADER } from '../../../shared/protocol.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createBody, type FileServer, listNames, query, readError, serveFiles } from './support.ts'

const GiB = 1024 ** 3
const chunk = Buffer.alloc(3_000_000, 'n')

async function expectUnchanged(t: Test, home: string, interrupt: () => Promise<unknown>) {
  await mkdir(join(home, 'dir'))
  await writeFile(join(home, 'dir/file'), 'old')
  await interrupt()
  await waitUntil('only one file is left', async () => (await listNames(join(home, 'dir'))).length === 1)
  t.equal(await readFile(join(home, 'dir/file'), 'utf8'), 'old')
}

/** Waits until the temporary file exists, so that the interruption happens during the write. */
const waitForTempFile = (home: string) =>
  waitUntil('the temporary file exists', async () => (await listNames(join(home, 'dir'))).length === 2)

const PUT = { ':method': 'PUT', ':path': '/upload?path=dir/file' }

const requestHead = (headers: string) =>
  `PUT /upload?path=dir/file HTTP/1.1\r\nhost: box\r\ncontent-type: text/plain\r\n${headers}\r\n\r\n`

for (const [framing, headers] of [
  ['a declared length', `content-length: ${2 * chunk.length}`],
  ['chunked encoding', 'transfer-encoding: chunked'],
] as const) {
  t.test(`keeps the old file when the client disconnects, with ${framing}`, async (t) => {
    const { home, port } = await serveFiles(t)
    await expectUnchanged(t, home, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(requestHead(headers))
      if (headers.startsWith('transfer')) socket.write(`${(2 * chunk.length).toString(16)}\r\n`)
      socket.write(chunk)
      await waitForTempFile(home)
      socket.destroy()
    })
  })
}

for (const interruption of ['stream reset', 'lost session'] as const) {
  t.test(`keeps the old file after a ${interruption} on HTTP/2`, async (t) => {
    const { home, url } = await serveFiles(t, { http2: true })
    await expectUnchanged(t, home, async () => {
      const session = connectHttp2(url)
      session.on('error', () => undefined)
      const stream = session.request({ ...PUT, 'content-length': 2 * chunk.length })
      stream.on('error', () => undefined)
      stream.write(chunk)
      await waitForTempFile(home)
      if (interruption === 'stream reset') stream.close(8)
      else session.destroy()
      await new Promise((resolve) => stream.once('close', resolve))
      session.destroy()
    })
  })
}

t.test(
  'rejects an HTTP/2 upload without a content-length, since truncation could not be detected',
  async (t) => {
    const { home, url } = await serveFiles(t, { http2: true })
    await expectUnchanged(t, home, async () => {
      const session = connectHttp2(url)
      const stream = session.request(PUT)
      stream.end('new')
      const [headers] = await once(stream, 'response')
      t.equal(headers[':status'], 400)
      session.destroy()
    })
    const session = connectHttp2(url)
    const empty = session.request({ ...PUT, ':path': '/upload?path=empty' }, { endStream: true })
    const [headers] = await once(empty, 'response')
    t.equal(headers[':status'], 200, 'an empty body needs no content-length')
    session.destroy()
  },
)

t.test('rejects an upload that declares more than 1 GiB before reading it', async (t) => {
  const { home, port } = await serveFiles(t)
  await expectUnchanged(t, home, async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write(requestHead(`content-length: ${GiB + 1}`))
    const [response] = (await new Promise((resolve) => socket.once('data', (data) => resolve([data])))) as [
      Buffer,
    ]
    t.match(response.toString(), /^HTTP\/1.1 413 [\s\S]*payload_too_large/)
    socket.destroy()
  })
})

async function serveTransfer(t: Test, body: () => Readable, length: number | null) {
  const server: FileServer = await serveFiles(t, {
    transferDialer: {
      fetch: async (id) => ({ chunks: id === 'one' ? body() : Readable.from([]), release: () => {} }),
      send: async () => {},
    },
  })
  const send = async () =>
    readError(
      await fetch(`${server.url}/upload?path=dir/file`, {
        method: 'PUT',
        headers: {
          [DIAL_BACK_HEADER]: 'one',
          ...(length === null ? {} : { [TRANSFER_LENGTH_HEADER]: String(length) }),
        },
      }),
    )
  return { home: server.home, send }
}

t.test('keeps the old file after a transfer that is too short, too long, or interrupted', async (t) => {
  const onEnd = async () => undefined
  const complete = () => Readable.from(createBody([Buffer.from(chunk)], onEnd))
  const failing = () =>
    Readable.from(
      createBody([Buffer.from(chunk)], async () => {
        throw new Error('connection reset')
      }),
    )
  for (const [body, length, expected] of [
    [complete, chunk.length + 1, { status: 400, code: 'invalid_request' }],
    [complete, chunk.length - 1, { status: 400, code: 'invalid_request' }],
    [complete, GiB + 1, { status: 413, code: 'payload_too_large' }],
    [failing, null, { status: 502, code: 'box_unreachable', message: /connection reset/ }],
  ] as const) {
    const { home, send } = await serveTransfer(t, body, length)
    await expectUnchanged(t, home, async () => t.match(await send(), expected))
  }
})

t.test('rejects a transfer of undeclared length that exceeds 1 GiB', async (t) => {
  async function* createChunks() {
    for (let n = 0; n < 33; n++) yield Buffer.alloc(32 * 1024 * 1024)
  }
  const tooLarge = () => Readable.from(createChunks())
  const { home, send } = await serveTransfer(t, tooLarge, null)
  await expectUnchanged(t, home, async () =>
    t.match(await send(), { status: 413, code: 'payload_too_large' }),
  )
})

t.test('writes a complete transfer', async (t) => {
  const { home, url } = await serveFiles(t, {
    transferDialer: {
      fetch: async () => ({
        chunks: Readable.from([Buffer.from(chunk), Buffer.from(chunk)]),
        release: () => {},
      }),
      send: async () => {},
    },
  })
  const response = await fetch(`${url}/upload${query('~/big')}`, {
    method: 'PUT',
    headers: { [DIAL_BACK_HEADER]: 'x', [TRANSFER_LENGTH_HEADER]: String(2 * chunk.length) },
  })
  t.same(await response.json(), {
    ok: true,
    type: 'file.uploaded',
    path: join(home, 'big'),
    size: 2 * chunk.length,
  })
  t.same(await readFile(join(home, 'big')), Buffer.concat([chunk, chunk]))
})
