// Opens one WebSocket to the coordinator. Only commands that need it import this module, because it loads ws.
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { MAX_ATTACH_MESSAGE_BYTES } from '../../shared/attach-format.ts'

export type WebSocketRequest = { url: string; headers: Record<string, string>; signal: AbortSignal }

/** `socket` is paused: the caller resumes it after it has added its listeners. `response` is a refusal. */
export type WebSocketOrResponse =
  | { socket: WebSocket; response: null }
  | { socket: null; response: IncomingMessage }

/** Rejects with the system's error when there is no response. The signal also closes the open WebSocket. */
export function openWebSocket({ url, headers, signal }: WebSocketRequest): Promise<WebSocketOrResponse> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, {
      headers,
      maxPayload: MAX_ATTACH_MESSAGE_BYTES,
      perMessageDeflate: false,
    })
    const onAbort = () => socket.terminate()
    signal.addEventListener('abort', onAbort)
    socket.once('close', () => signal.removeEventListener('abort', onAbort))
    socket.on('error', reject)
    socket.once('unexpected-response', (_request, response) => {
      // ws leaves the connection open after a refusal, which keeps the process alive.
      const { socket: connection } = response
      response.once('close', () => {
        signal.removeEventListener('abort', onAbort)
        connection.destroy()
      })
      resolve({ socket: null, response })
    })
    socket.once('open', () => {
      socket.pause()
      resolve({ socket, response: null })
    })
    if (signal.aborted) onAbort()
  })
}
