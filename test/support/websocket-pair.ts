// The two ends of a WebSocket over loopback.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'

/** Both ends are paused. */
export async function openWebSocketPair(t: Test): Promise<[WebSocket, WebSocket]> {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    perMessageDeflate: false,
    autoPong: false,
  })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  client.once('open', () => client.pause())
  const [[accepted]] = await Promise.all([once(server, 'connection'), once(client, 'open')])
  const ends: [WebSocket, WebSocket] = [client, accepted]
  accepted.pause()
  t.teardown(() => {
    for (const end of ends) end.terminate()
  })
  return ends
}
