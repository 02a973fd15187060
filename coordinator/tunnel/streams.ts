// What is followed, beside the tunnel: each stream is a WebSocket that the box's agent opens. Not an HTTP request as a
// transfer is: a proxy in front of the coordinator may keep a request's body until it has all of it.
import type { IncomingMessage } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { STREAM_PATH } from '../../shared/protocol.ts'
import { websocketReadable } from '../../shared/websocket-duplex.ts'
import { type Authenticate, authenticatedBox } from './credentials.ts'
import { createDialIns, type DialIns } from './dial-ins.ts'
import { refuse } from './refuse.ts'
import type { Streams } from './types.ts'
import { createWebSocketServer } from './websocket-server.ts'

export type StreamHub = Streams &
  Pick<DialIns<Readable>, 'cut' | 'close'> & {
    handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  }

/** The largest message taken from an agent, which sends a few events of up to 300 KiB together. */
const MAX_MESSAGE_BYTES = 1024 * 1024

/** @param options.dialMs how long the agent has to dial. */
export function createStreams(options: {
  log: Logger
  authenticate: Authenticate
  dialMs: number
}): StreamHub {
  const { log, authenticate } = options
  const { expect, take, cut, close } = createDialIns<Readable>(options.dialMs)
  const server = createWebSocketServer(MAX_MESSAGE_BYTES)

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = (error: Error) => log.debug({ err: error }, 'agent left before the upgrade')
    socket.on('error', onError)
    const boxId = await authenticatedBox(request, authenticate)
    if (boxId === null) throw new ApiError('unauthorized', 'No box has this id and token.')
    const settle = take(boxId, (request.url ?? '').slice(STREAM_PATH.length), socket)
    server.handleUpgrade(request, socket, head, (ws) => {
      socket.off('error', onError)
      const stream = websocketReadable(ws)
      if (!settle(stream)) stream.destroy()
    })
  }

  return {
    expect,
    cut,
    close,
    handleUpgrade(request, socket, head) {
      accept(request, socket, head).catch((error: unknown) => {
        const known = error instanceof ApiError
        if (!known) log.error({ err: error }, 'a stream could not be accepted')
        const { status, code, message } = known ? error : new ApiError('control_plane_unavailable')
        refuse(socket, { status, code, message })
      })
    },
  }
}
