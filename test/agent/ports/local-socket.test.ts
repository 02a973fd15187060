// A TCP socket whose peer resets the connection while received bytes are not read yet.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { LocalSocket } from '../../../agent/ports/local-socket.ts'
import { waitUntil } from '../../support/wait-until.ts'

class ObservedSocket extends LocalSocket {
  hasReceivedEnd = false

  override push(chunk: Buffer | null): boolean {
    this.hasReceivedEnd ||= chunk === null
    return super.push(chunk)
  }
}

t.test('a write that fails between the FIN of the peer and its reader', async (t) => {
  const server = createServer({ allowHalfOpen: true })
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const accepted = once(server, 'connection')
  const socket = new ObservedSocket({ allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  socket.connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })
  const [peer] = (await accepted) as [Socket]
  await new Promise<void>((resolve) => peer.end('response', resolve))
  socket.read(0)
  await waitUntil('the FIN has arrived', () => socket.hasReceivedEnd)
  peer.resetAndDestroy()
  const write = () => {
    if (!socket.writableNeedDrain && !socket.destroyed) socket.write(Buffer.alloc(64 * 1024))
    return socket.writableNeedDrain
  }
  await waitUntil('a write fails', write)
  const isClosed = new Promise((resolve) => socket.once('close', resolve))
  const [data] = await once(socket, 'data')
  t.equal(String(data), 'response')
  await isClosed
})
