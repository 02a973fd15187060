// A proxy refuses the tunnel and keeps the connection open: the agent closes it, because it opens another one for each attempt.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t from 'tap'
import { startTestAgent } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

const BODY = JSON.stringify({ error: { code: 'control_plane_unavailable', message: 'Try again.' } })

for (const body of [BODY, ''])
  t.test(`a refusal with ${body.length} bytes`, async (t) => {
    const open = new Set<Socket>()
    let attempts = 0
    const server = createServer()
    server.on('connection', (socket: Socket) => {
      open.add(socket)
      socket.on('error', () => undefined).once('close', () => open.delete(socket))
    })
    server.on('upgrade', (_request, socket: Socket) => {
      attempts += 1
      socket.resume().on('end', () => socket.end())
      const head = ['HTTP/1.1 503 Service Unavailable', `Content-Length: ${body.length}`, '', body]
      socket.write(head.join('\r\n'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const agent = await startTestAgent({ boxId: 'box', token: 'token' }, `http://127.0.0.1:${port}`)
    t.teardown(() => {
      for (const socket of open) socket.destroy()
      server.close()
    })
    await waitUntil('the agent has tried often', () => attempts >= 5)
    await agent.close()
    await waitUntil('its connections are closed', () => open.size === 0)
    t.pass()
  })
