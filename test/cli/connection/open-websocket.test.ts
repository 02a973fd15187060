// The connection of a refused WebSocket is closed.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { openWebSocket } from '../../../cli/connection/open-websocket.ts'

t.test('closes the connection after a refusal on a persistent connection', async (t) => {
  const server = createServer({ keepAliveTimeout: 0 })
  server.on('upgrade', (_request, socket: Socket) => {
    // An HTTP server that ignores the upgrade leaves the connection open.
    socket
      .resume()
      .write(
        'HTTP/1.1 503 Service Unavailable\r\nconnection: keep-alive\r\ncontent-length: 8\r\n\r\nstarting',
      )
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(server, 'connection') as Promise<[Socket]>
  const { port } = server.address() as AddressInfo
  const { socket, response } = await openWebSocket({
    url: `http://127.0.0.1:${port}/`,
    headers: {},
    signal: new AbortController().signal,
  })
  t.equal(socket, null)
  t.equal(response?.statusCode, 503)
  const [connection] = await connected
  const ended = once(connection, 'end')
  t.equal(response && (await text(response)), 'starting')
  await ended
})
