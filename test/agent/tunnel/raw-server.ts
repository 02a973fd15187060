// A WebSocket server on this machine that shows the bytes as they came.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { openWebSocket } from '../../../agent/tunnel/websocket.ts'

/** A WebSocket to it that has not opened yet, what came over the connection, and the messages that were made of it. */
export async function dialRawServer(t: Test, host: string) {
  const http = createServer()
  const server = new WebSocketServer({ server: http })
  const pieces: Buffer[] = []
  const messages: Buffer[] = []
  http.on('upgrade', (_request, socket) =>
    socket.prependListener('data', (bytes: Buffer) => pieces.push(Buffer.from(bytes))),
  )
  server.on('connection', (peer) => peer.on('message', (message: Buffer) => messages.push(message)))
  await once(http.listen(0, '0.0.0.0'), 'listening')
  const url = `http://${host}:${(http.address() as AddressInfo).port}`
  const ws = openWebSocket(url, { headers: {}, handshakeTimeoutMs: 10_000, maxMessageBytes: 1024 })
  t.teardown(() => {
    ws.terminate()
    server.close()
    http.close()
  })
  return { ws, url, messages, raw: () => Buffer.concat(pieces) }
}
