// Transfers of large bodies over dial-back connections.
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import t, { type Test } from 'tap'
import { createTransferDialer } from '../../../../agent/tunnel/transfer-dialer.ts'
import { BOX_HEADER, TRANSFER_PATH_PREFIX } from '../../../../shared/protocol.ts'
import { readAll, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

/** Copies each chunk: the dialer reuses their memory. */
async function copyAll(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const copies: Buffer[] = []
  for await (const chunk of chunks) copies.push(Buffer.from(chunk))
  return Buffer.concat(copies)
}

async function setUp(t: Test) {
  const coordinator = await startTunnelServer({ dialBackTimeoutMs: DEADLINE_MS })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const createDialer = ({ boxId, token }: typeof box) =>
    createTransferDialer({ boxId, readUrl: async () => coordinator.url, readToken: async () => token })
  const { transfers } = coordinator.tunnels
  return { coordinator, box, dialer: createDialer(box), createDialer, transfers }
}

t.test('upload: the agent fetches the body, with or without a declared length', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  for (const length of [6, null]) {
    const transfer = transfers.expect(box.boxId)
    const fetching = dialer.fetch(transfer.id, length)
    const { response } = await transfer.connection
    response.writeHead(200, length === null ? {} : { 'content-length': length }).end('upload')
    t.equal((await copyAll((await fetching).chunks)).toString(), 'upload')
  }
})

t.test('upload: a truncated body is an error on the agent', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  for (const length of [1000, null]) {
    const transfer = transfers.expect(box.boxId)
    const fetching = dialer.fetch(transfer.id, length)
    const { response } = await transfer.connection
    response.writeHead(200, length === null ? {} : { 'content-length': length })
    response.write('partial', () => response.destroy())
    await t.rejects(fetching.then(({ chunks }) => copyAll(chunks)))
  }
})

t.test('download: the agent sends headers and body', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const sending = dialer.send(
    transfer.id,
    { 'x-service-path': '/a' },
    Readable.from([Buffer.from('down'), Buffer.from('load')]),
  )
  const { request, response } = await transfer.connection
  t.equal(request.headers['x-service-path'], '/a')
  t.equal((await readAll(request)).toString(), 'download')
  response.writeHead(204).end()
  await sending
})

t.test('download: a read error on the box is an error on both sides', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const source = new Readable({ read: () => undefined })
  source.push('partial')
  const sending = dialer.send(transfer.id, {}, source)
  const { request } = await transfer.connection
  await once(request, 'readable')
  const outcome = Promise.allSettled([readAll(request), sending])
  source.destroy(new Error('read error'))
  t.match(await outcome, [{ status: 'rejected' }, { status: 'rejected', reason: { message: 'read error' } }])
})

t.test('download: an abort by the coordinator is an error on the agent', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  let isDestroyed = false
  const source = new Readable({
    read() {
      this.push(Buffer.alloc(65_536))
    },
    destroy(error, done) {
      isDestroyed = true
      done(error)
    },
  })
  const sending = dialer.send(transfer.id, {}, source)
  const { request } = await transfer.connection
  request.destroy()
  await t.rejects(sending)
  t.ok(isDestroyed, 'the file is closed')
})

t.test('a dial-back id is valid for one box and one connection', async (t) => {
  const { coordinator, transfers, box, dialer, createDialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const fetchBody = async (from: typeof dialer, id = transfer.id, length: number | null = 1) =>
    copyAll((await from.fetch(id, length)).chunks)
  const otherBoxDialer = createDialer(coordinator.addBox())
  const wrongTokenDialer = createDialer({ ...box, token: 'wrong' })
  for (const length of [1, null]) {
    await t.rejects(fetchBody(otherBoxDialer, transfer.id, length), { message: /404/ }, "another box's id")
    await t.rejects(fetchBody(wrongTokenDialer, transfer.id, length), { message: /401/ }, 'a wrong token')
  }
  const fetching = fetchBody(dialer)
  const { response } = await transfer.connection
  response.writeHead(200, { 'content-length': 1 }).end('x')
  await fetching
  await t.rejects(fetchBody(dialer), { message: /404/ }, 'a second use')
  const discarded = transfers.expect(box.boxId)
  discarded.discard()
  await t.rejects(fetchBody(dialer, discarded.id), { message: /404/ }, 'a discarded id')
})

t.test('discards a connection that the agent has already opened', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  const fetching = dialer.fetch(transfer.id, 1)
  await transfer.connection
  transfer.discard()
  await t.rejects(fetching)
})

t.test('an agent that does not connect in time is unreachable', async (t) => {
  const coordinator = await startTunnelServer({ dialBackTimeoutMs: 10 })
  t.after(() => coordinator.close())
  await t.rejects(coordinator.tunnels.transfers.expect(coordinator.addBox().boxId).connection, {
    code: 'box_unreachable',
  })
})

t.test('rejects a large body with an unknown id without reading it', async (t) => {
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
  t.ok((await sending) instanceof Error, 'the connection is closed')
})

t.test('a reader that stops reading pauses the agent', async (t) => {
  const { transfers, box, dialer } = await setUp(t)
  const transfer = transfers.expect(box.boxId)
  let produced = 0
  const source = new Readable({
    read() {
      produced += 65_536
      this.push(Buffer.alloc(65_536))
    },
  })
  const sending = dialer.send(transfer.id, {}, source)
  const { request } = await transfer.connection
  let last = -1
  let unchanged = 0
  await waitUntil('the agent stops reading its file', () => {
    unchanged = produced === last ? unchanged + 1 : 0
    last = produced
    return unchanged > 20
  })
  t.ok(produced < 32 * 1024 * 1024, `${produced} bytes are in flight`)
  request.destroy()
  await t.rejects(sending)
})

t.test('another transfer on the same connection outlives the box of the one before', async (t) => {
  const { coordinator, transfers, box } = await setUp(t)
  const other = coordinator.addBox()
  // As between two coordinators.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  async function open({ boxId, token }: typeof box) {
    const transfer = transfers.expect(boxId)
    const headers = { [BOX_HEADER]: boxId, authorization: `Bearer ${token}` }
    const outgoing = request(coordinator.url + TRANSFER_PATH_PREFIX + transfer.id, { agent, headers })
    const received = once(outgoing, 'response')
    outgoing.end()
    const { response } = await transfer.connection
    response.writeHead(200).write('first ')
    const [incoming] = (await received) as [IncomingMessage]
    return { response, incoming, socket: response.socket }
  }
  const sockets = new Set<unknown>()
  let listeners = 0
  for (let number = 0; number < 3; number++) {
    const { response, incoming, socket } = await open(box)
    sockets.add(socket)
    listeners = socket?.listenerCount('timeout') ?? 0
    response.end('second')
    t.equal((await readAll(incoming)).toString(), 'first second')
  }
  const { response, incoming, socket } = await open(other)
  t.equal(sockets.add(socket).size, 1, 'all use one connection')
  t.equal(socket?.listenerCount('timeout'), listeners, 'no listener of an earlier transfer remains')
  coordinator.tunnels.disconnect(box.boxId, 'the box is deleted')
  response.end('second')
  t.equal((await readAll(incoming)).toString(), 'first second')
})
