// What an agent sends is masked where a proxy may be between it and the coordinator.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import { noProxy } from '../../../agent/tunnel/proxy.ts'
import { openWebSocket } from '../../../agent/tunnel/websocket.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const MESSAGE = Buffer.from('the bytes of a message')

/** Sends the message to a server. Resolves to the frame as it was sent, and to the message that the server received. */
async function send(t: Test, listen: string | number, toUrl: (address: AddressInfo | string) => string) {
  const http = createServer()
  const server = new WebSocketServer({ server: http })
  const sent: Buffer[] = []
  http.on('upgrade', (_request, socket) =>
    socket.prependListener('data', (chunk: Buffer) => sent.push(Buffer.from(chunk))),
  )
  await once(http.listen(listen), 'listening')
  t.teardown(() => {
    server.close()
    http.close()
  })
  const received = once(server, 'connection').then(([ws]) => once(ws as WebSocket, 'message'))
  const ws = openWebSocket(toUrl(http.address() ?? ''), '/agent/tunnel', {
    headers: {},
    handshakeTimeoutMs: 10_000,
    maxMessageBytes: 1024,
    selectProxy: noProxy,
  })
  t.teardown(() => ws.terminate())
  await once(ws, 'open')
  ws.send(MESSAGE)
  const [message] = await received
  return { frame: Buffer.concat(sent), message: message as Buffer }
}

/** FIN and the type, then the bit of a mask and the length. */
const HEADER = [0x82, 0x80 | MESSAGE.length]

t.test('on a socket of this machine, the mask is zero', async (t) => {
  const { frame, message } = await send(t, join(createTempDir(t, 'socket'), 's'), (path) => `unix:${path}`)
  t.same(message, MESSAGE)
  t.same(frame, Buffer.from([...HEADER, 0, 0, 0, 0, ...MESSAGE]))
})

t.test('on other connections, the mask is random', async (t) => {
  const { frame, message } = await send(
    t,
    0,
    (address) => `http://127.0.0.1:${(address as AddressInfo).port}`,
  )
  t.same(message, MESSAGE)
  t.same([...frame.subarray(0, HEADER.length)], HEADER)
  const mask = frame.subarray(HEADER.length, HEADER.length + 4)
  t.notSame([...mask], [0, 0, 0, 0])
  t.same(
    frame.subarray(HEADER.length + 4),
    Buffer.from(MESSAGE.map((byte, index) => byte ^ (mask[index % 4] ?? 0))),
  )
})
