// Opens connections that send the start of a request and then nothing, as many as a client without a key can.
import { once } from 'node:events'
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'

/** Resolves when all are open, or were closed. `close` closes them. */
export async function sendHalfRequests(
  url: string,
  count: number,
  options: Partial<TcpNetConnectOpts> = {},
): Promise<{ close(): void }> {
  const { hostname: host, port } = new URL(url)
  const sockets: Socket[] = Array.from({ length: count }, () =>
    connect({ host, port: Number(port), ...options }),
  )
  await Promise.all(
    sockets.map(async (socket) => {
      socket.on('error', () => undefined)
      await Promise.race([once(socket, 'connect'), once(socket, 'close')])
      socket.write('GET / HTTP/1.1\r\nhost: ')
    }),
  )
  return {
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}
