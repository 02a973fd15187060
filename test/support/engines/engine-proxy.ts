// A proxy in front of an engine's socket, which can answer in place of the engine.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import type { Engine } from './engine.ts'

/** Returns true when it answers the request, or never will. */
export type Interceptor = (incoming: IncomingMessage, response: ServerResponse) => boolean

export async function startEngineProxy({ dir, socket: socketPath }: Pick<Engine, 'dir' | 'socket'>) {
  const socket = join(dir, 'proxy.sock')
  let intercept: Interceptor = () => false
  const server = createServer((incoming, response) => {
    if (intercept(incoming, response)) return
    const { method, url: path, headers } = incoming
    const forwarded = request({ socketPath, method, path, headers }, (answer) => {
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
