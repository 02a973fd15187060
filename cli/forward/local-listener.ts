// Listens on a port of this machine for `box forward`.
import { createServer, type Server, type Socket } from 'node:net'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { type Forward, suggestPort } from './parse-forward.ts'

export type LocalListener = {
  /** Such as 127.0.0.1 and ::1. */
  addresses: string[]
  port: number
  /** Stops listening, and resets the connections. */
  close(): void
}

/** The socket is paused, and allows half-open connections. */
export type OnConnection = (socket: Socket) => void

/**
 * Listens on 127.0.0.1, and on ::1 too where that is possible: browsers try both for `localhost`.
 * @throws CliError when the port is not available
 */
export async function listenLocally(forward: Forward, onConnection: OnConnection): Promise<LocalListener> {
  const sockets = new Set<Socket>()
  const onSocket = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    onConnection(socket)
  }
  const server = await listen('127.0.0.1', forward.localPort, onSocket).catch((error: unknown) => {
    throw toListenError(error, forward)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : forward.localPort
  // Another program may have the port there, or the machine has no IPv6.
  const server6 = await listen('::1', port, onSocket).catch(() => null)
  const servers = [server, ...(server6 === null ? [] : [server6])]
  return {
    addresses: ['127.0.0.1', ...(server6 === null ? [] : ['::1'])],
    port,
    close() {
      for (const open of servers) open.close()
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
}

function listen(host: string, port: number, onConnection: OnConnection): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, onConnection)
  server.once('error', reject)
  server.listen({ host, port }, () => {
    // Such as EMFILE, when a connection cannot be accepted. The others continue.
    server.on('error', () => undefined)
    resolve(server)
  })
  return promise
}

function toListenError(error: unknown, { localPort, port }: Forward): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const problem =
    code === 'EADDRINUSE'
      ? `Port ${localPort} of this machine is in use.`
      : code === 'EACCES'
        ? `You may not listen on port ${localPort} of this machine.`
        : null
  if (problem === null) return error
  return new CliError(EXIT.failed, `${problem} Choose another one: ${suggestPort(localPort)}:${port}.`, {
    code: 'local_port_unavailable',
    cause: error,
  })
}
