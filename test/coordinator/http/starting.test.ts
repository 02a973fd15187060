// Requests that arrive before the coordinator has started.
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { listen } from '../../../coordinator/http/listen.ts'

t.test('gets 503 and closes the connection, so that a client does not keep it open', async (t) => {
  const { server, url } = await listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  for (const headers of ['', 'connection: upgrade\r\nupgrade: websocket\r\n']) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(`GET /api/v1/boxes HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n`)
    const response = await text(socket)
    t.match(response, /^HTTP\/1\.1 503 /)
    t.match(response, 'control_plane_unavailable')
    t.match(response.toLowerCase(), '\r\nconnection: close\r\n')
  }
})
