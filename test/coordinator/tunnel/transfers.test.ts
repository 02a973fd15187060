import { once } from 'node:events'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import t, { type Test } from 'tap'
import { createTransferDialer } from '../../../agent/tunnel/transfer-dialer.ts'
import { readAll, startTestCoordinator, waitUntil } from '../../support/tunnel.ts'

async function bytesOf(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const copies: Buffer[] = []
  for await (const chunk of chunks) copies.push(Buffer.from(chunk))
  return Buffer.concat(copies)
}

async function setUp(t: Test) {
  const coordinator = await startTestCoordinator({ dialBackTimeoutMs: 5000 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const dialerOf = ({ boxId, token }: typeof box) =>
    createTransferDialer({ boxId, readUrl: async () => coordinator.url, readToken: async () => token })
  return { coordinator, box, dialer: dialerOf(box), dialerOf, transfers: coordinator.tunnels.transfers }
}

t.test('an upload: the box fetches what the coordinator has, with a length or without', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  for (const length of [6, null]) {
    const transfer = transfers.expect(box.boxId)
    const fetching = dialer.fetch(transfer.id, length)
    const { response } = await transfer.connection
    response.writeHead(200, length === null ? {} : { 'content-length': length }).end('upload')
    t.equal((await bytesOf((await fetching).chunks)).toString(), 'upload')
  }
})

t.test('an upload that ends short, with or without a length, is an error on the box', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  for (const length of [1000, null]) {
    const transfer = transfers.expect(box.boxId)
    const fetching = dialer.fetch(transfer.id, length)
    const { response } = await transfer.connection
    response.writeHead(200, length === null ? {} : { 'content-length': length })
    response.write('short', () => response.destroy())
    await t.rejects(fetching.then(({ chunks }) => bytesOf(chunks)))
  }
})

t.test('a download: the box brings headers and bytes', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const bringing = dialer.send(
    transfer.id,
    { 'x-service-path': '/a' },
    Readable.from([Buffer.from('down'), Buffer.from('load')]),
  )
  const { request, response } = await transfer.connection
  t.equal(request.headers['x-service-path'], '/a')
  t.equal((await readAll(request)).toString(), 'download')
  response.writeHead(204).end()
  await bringing
})

t.test('a download that breaks off on the box is an error for the coordinator', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const source = new Readable({ read: () => undefined })
  source.push('begun')
  const bringing = dialer.send(transfer.id, {}, source)
  const { request } = await transfer.connection
  await once(request, 'readable')
  const outcome = Promise.allSettled([readAll(request), bringing])
  source.destroy(new Error('read error'))
  t.match(await outcome, [{ status: 'rejected' }, { status: 'rejected', reason: { message: 'read error' } }])
})

t.test('a download the coordinator does not want any more is an error on the box', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  let destroyed = false
  const source = new Readable({
    read() {
      this.push(Buffer.alloc(65_536))
    },
    destroy(error, done) {
      destroyed = true
      done(error)
    },
  })
  const bringing = dialer.send(transfer.id, {}, source)
  const { request } = await transfer.connection
  request.destroy()
  await t.rejects(bringing)
  t.ok(destroyed, 'the file is closed')
})

t.test('a transfer is for one box and for one use', async (t) => {
  const { coordinator, transfers, box, dialer, dialerOf } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const fetched = async (from: typeof dialer, id = transfer.id, length: number | null = 1) =>
    bytesOf((await from.fetch(id, length)).chunks)
  for (const length of [1, null]) {
    const ask = (from: typeof dialer, id?: string) => fetched(from, id, length)
    await t.rejects(ask(dialerOf(coordinator.addBox())), { message: /404/ }, "another box's id")
    await t.rejects(ask(dialerOf({ ...box, token: 'wrong' })), { message: /401/ }, 'a wrong token')
  }
  const fetching = fetched(dialer)
  const { response } = await transfer.connection
  response.writeHead(200, { 'content-length': 1 }).end('x')
  await fetching
  await t.rejects(fetched(dialer), { message: /404/ }, 'a second use')
  const released = transfers.expect(box.boxId)
  released.release()
  await t.rejects(fetched(dialer, released.id), { message: /404/ }, 'a released one')
})

t.test('a box that does not dial in is unreachable', async (t) => {
  const coordinator = await startTestCoordinator({ dialBackTimeoutMs: 10 })
  t.after(() => coordinator.close())
  await t.rejects(coordinator.tunnels.transfers.expect(coordinator.addBox().boxId).connection, {
    code: 'box_unreachable',
  })
})

t.test('a large body to nowhere is refused without being read', async (t) => {
  const { coordinator, box } = await setUp(t)
  const put = request(`${coordinator.url}/agent/transfers/none`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${box.token}`, 'boxwood-box': box.boxId },
  })
  const endless = new Readable({
    read() {
      this.push(Buffer.alloc(65_536))
    },
  })
  const sending = pipeline(endless, put).catch((error: Error) => error)
  const [response] = await once(put, 'response')
  t.equal(response.statusCode, 404)
  response.resume()
  t.ok((await sending) instanceof Error, 'the connection was ended')
})

t.test('a reader that stops reading stops the box', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  let produced = 0
  const source = new Readable({
    read() {
      produced += 65_536
      this.push(Buffer.alloc(65_536))
    },
  })
  const bringing = dialer.send(transfer.id, {}, source)
  const { request } = await transfer.connection
  let last = -1
  let same = 0
  await waitUntil('the box stops reading its file', () => {
    same = produced === last ? same + 1 : 0
    last = produced
    return same > 20
  })
  t.ok(produced < 32 * 1024 * 1024, `${produced} bytes are on the way`)
  request.destroy()
  await t.rejects(bringing)
})
