// An upload that does not arrive whole leaves the old file as it was and nothing beside it.
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { TRANSFER_HEADER, TRANSFER_LENGTH_HEADER } from '../../../shared/protocol.ts'
import { bodyOf, errorOf, namesIn, query, type Served, serveFiles, until } from './support.ts'

const GiB = 1024 ** 3
const part = Buffer.alloc(3_000_000, 'n')

async function untouched(t: Test, home: string, after: () => Promise<unknown>) {
  await mkdir(join(home, 'folder'))
  await writeFile(join(home, 'folder/file'), 'old')
  await after()
  await until(async () => (await namesIn(join(home, 'folder'))).length === 1)
  t.equal(await readFile(join(home, 'folder/file'), 'utf8'), 'old')
}

/** Waits until the write has begun, so that breaking it off means something. */
const begun = (home: string) => until(async () => (await namesIn(join(home, 'folder'))).length === 2)

const PUT = { ':method': 'PUT', ':path': '/upload?path=folder/file' }

const head = (headers: string) =>
  `PUT /upload?path=folder/file HTTP/1.1\r\nhost: box\r\ncontent-type: text/plain\r\n${headers}\r\n\r\n`

for (const [what, headers] of [
  ['a declared length', `content-length: ${2 * part.length}`],
  ['chunks', 'transfer-encoding: chunked'],
] as const) {
  t.test(`the sender goes away, ${what}`, async (t) => {
    const { home, port } = await serveFiles(t)
    await untouched(t, home, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(head(headers))
      if (headers.startsWith('transfer')) socket.write(`${(2 * part.length).toString(16)}\r\n`)
      socket.write(part)
      await begun(home)
      socket.destroy()
    })
  })
}

for (const how of ['reset', 'session lost'] as const) {
  t.test(`HTTP/2, ${how}`, async (t) => {
    const { home, url } = await serveFiles(t, { http2: true })
    await untouched(t, home, async () => {
      const session = connectHttp2(url)
      session.on('error', () => undefined)
      const stream = session.request({ ...PUT, 'content-length': 2 * part.length })
      stream.on('error', () => undefined)
      stream.write(part)
      await begun(home)
      if (how === 'reset') stream.close(8)
      else session.destroy()
      await new Promise((resolve) => stream.once('close', resolve))
      session.destroy()
    })
  })
}

t.test('HTTP/2 without a length, whose end would say nothing', async (t) => {
  const { home, url } = await serveFiles(t, { http2: true })
  await untouched(t, home, async () => {
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
  t.equal(headers[':status'], 200, 'an empty body needs none')
  session.destroy()
})

t.test('larger than 1 GiB by its own word: refused at once', async (t) => {
  const { home, port } = await serveFiles(t)
  await untouched(t, home, async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write(head(`content-length: ${GiB + 1}`))
    const [answer] = (await new Promise((resolve) => socket.once('data', (data) => resolve([data])))) as [
      Buffer,
    ]
    t.match(answer.toString(), /^HTTP\/1.1 413 [\s\S]*payload_too_large/)
    socket.destroy()
  })
})

async function transferred(t: Test, body: () => Readable, length: number | null) {
  const served: Served = await serveFiles(t, {
    transfers: {
      fetch: async (id) => ({ chunks: id === 'one' ? body() : Readable.from([]), drop: () => {} }),
      bring: async () => {},
    },
  })
  const send = async () =>
    errorOf(
      await fetch(`${served.url}/upload?path=folder/file`, {
        method: 'PUT',
        headers: {
          [TRANSFER_HEADER]: 'one',
          ...(length === null ? {} : { [TRANSFER_LENGTH_HEADER]: String(length) }),
        },
      }),
    )
  return { home: served.home, send }
}

t.test('a transfer that is too short, too long, or breaks off', async (t) => {
  const end = async () => undefined
  const whole = () => Readable.from(bodyOf([part], end))
  const failing = () =>
    Readable.from(
      bodyOf([part], async () => {
        throw new Error('connection reset')
      }),
    )
  for (const [body, length, expected] of [
    [whole, part.length + 1, { status: 400, code: 'invalid_request' }],
    [whole, part.length - 1, { status: 400, code: 'invalid_request' }],
    [whole, GiB + 1, { status: 413, code: 'payload_too_large' }],
    [failing, null, { status: 502, code: 'box_unreachable', message: /connection reset/ }],
  ] as const) {
    const { home, send } = await transferred(t, body, length)
    await untouched(t, home, async () => t.match(await send(), expected))
  }
})

t.test('a transfer that never says how much it is and passes 1 GiB', async (t) => {
  const chunk = Buffer.alloc(32 * 1024 * 1024)
  const endless = () => Readable.from(bodyOf(Array(33).fill(chunk), async () => undefined))
  const { home, send } = await transferred(t, endless, null)
  await untouched(t, home, async () => t.match(await send(), { status: 413, code: 'payload_too_large' }))
})

t.test('a whole transfer is written', async (t) => {
  const { home, url } = await serveFiles(t, {
    transfers: {
      fetch: async () => ({ chunks: Readable.from([part, part]), drop: () => {} }),
      bring: async () => {},
    },
  })
  const response = await fetch(`${url}/upload${query('~/big')}`, {
    method: 'PUT',
    headers: { [TRANSFER_HEADER]: 'x', [TRANSFER_LENGTH_HEADER]: String(2 * part.length) },
  })
  t.same(await response.json(), {
    ok: true,
    type: 'file.uploaded',
    path: join(home, 'big'),
    size: 2 * part.length,
  })
  t.same(await readFile(join(home, 'big')), Buffer.concat([part, part]))
})
