// A share whose program is a server of bytes, for responses that no HTTP library sends.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { HOST, openRaw, startShare } from './share-fixture.ts'

type Respond = (socket: Socket, requests: number) => void

/** A program that responds with bytes to each request, or as soon as it is connected. */
export async function startBytes(t: Test, respond: Respond, { isEarly = false } = {}) {
  const sockets = new Set<Socket>()
  let requests = 0
  const app = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    if (isEarly) respond(socket, requests)
    socket.on('data', () => {
      requests += 1
      if (!isEarly) respond(socket, requests)
    })
  })
  await once(app.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    app.close()
  })
  const { port } = app.address() as { port: number }
  const share = await startShare(t, {
    connect: async () => {
      const socket = connect({ port, host: '127.0.0.1' })
      await once(socket, 'connect')
      if (isEarly)
        await waitUntil('the response has arrived', () => socket.bytesRead > 0 || socket.readableLength > 0)
      return socket
    },
  })
  return {
    connections: () => sockets.size,
    async open(method = 'GET') {
      const request = `${method} / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`
      const raw = await openRaw(t, share, request)
      await waitUntil('the connection is closed', () => raw.isClosed)
      return raw.received
    },
  }
}
