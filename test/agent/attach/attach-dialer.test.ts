// The dial-back connections of attached clients.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { createAttachDialer } from '../../../agent/attach/attach-dialer.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('a message that arrives with the handshake is not lost', async (t) => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  server.on('connection', (ws) => ws.send('{"type":"detach"}'))
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const dialer = createAttachDialer({
    boxId: 'box',
    readUrl: async () => `http://127.0.0.1:${port}`,
    readToken: async () => 'token',
  })
  t.teardown(() => dialer.close())
  const socket = await dialer.connect('id')
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  const types: string[] = []
  socket.onMessage(({ type }) => types.push(type))
  await waitUntil('the message arrives', () => types.length > 0)
  t.same(types, ['detach'])
})
