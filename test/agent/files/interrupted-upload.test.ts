// An upload that is interrupted or has the wrong length leaves the old file unchanged and no temporary file.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { DIAL_BACK_HEADER, TRANSFER_LENGTH_HEADER } from '../../../shared/protocol.ts'
import { callRoute } from '../../support/agent-routes.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createBody, type FileServer, listNames, query, serveFiles } from './support.ts'

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
  const send = async () => {
    const { status, text } = await callRoute(server.router, {
      method: 'PUT',
      path: '/upload?path=dir/file',
      headers: {
        [DIAL_BACK_HEADER]: 'one',
        ...(length === null ? {} : { [TRANSFER_LENGTH_HEADER]: String(length) }),
      },
    })
    return { status, ...JSON.parse(text).error }
  }
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
  const { home, router } = await serveFiles(t, {
    transferDialer: {
      fetch: async () => ({
        chunks: Readable.from([Buffer.from(chunk), Buffer.from(chunk)]),
        release: () => {},
      }),
      send: async () => {},
    },
  })
  const { text } = await callRoute(router, {
    method: 'PUT',
    path: `/upload${query('~/big')}`,
    headers: { [DIAL_BACK_HEADER]: 'x', [TRANSFER_LENGTH_HEADER]: String(2 * chunk.length) },
  })
  t.same(JSON.parse(text), {
    ok: true,
    type: 'file.uploaded',
    path: join(home, 'big'),
    size: 2 * chunk.length,
  })
  t.same(await readFile(join(home, 'big')), Buffer.concat([chunk, chunk]))
})

t.test('rejects an upload without a dial-back connection', async (t) => {
  const { home, router } = await serveFiles(t)
  await expectUnchanged(t, home, async () => {
    const { status, text } = await callRoute(router, { method: 'PUT', path: '/upload?path=dir/file' })
    t.match({ status, ...JSON.parse(text) }, { status: 400, error: { code: 'invalid_request' } })
  })
})
