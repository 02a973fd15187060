// A proxy in front of an engine's socket, which can answer in place of the engine.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import type { Engine } from './engine.ts'

/**
 * answered: the interceptor answers the request, or no one does. lost: the engine gets the request, and the connection is closed in
 * place of its answer. undefined: the proxy passes the request and its answer.
 */
export type Interceptor = (
  incoming: IncomingMessage,
  response: ServerResponse,
) => 'answered' | 'lost' | undefined

export async function startEngineProxy({ dir, socket: socketPath }: Pick<Engine, 'dir' | 'socket'>) {
  const socket = join(dir, 'proxy.sock')
  let intercept: Interceptor = () => undefined
  const server = createServer((incoming, response) => {
    const decision = intercept(incoming, response)
    if (decision === 'answered') return
    const { method, url: path, headers } = incoming
    const forwarded = request({ socketPath, method, path, headers }, (answer) => {
      if (decision === 'lost') return void answer.resume().on('end', () => response.destroy())
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      pipeline(answer, response, () => undefined)
    })
    // The engine was killed.
    forwarded.on('error', () => response.destroy())
    response.on('close', () => forwarded.destroy())
    pipeline(incoming, forwarded, () => undefined)
  })
  server.listen(socket)
  await once(server, 'listening')
  return {
    socket,
    /** Applies to the next requests. */
    intercept(interceptor: Interceptor) {
      intercept = interceptor
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
