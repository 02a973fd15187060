// The default transport, by fetch() and WebSocket of the runtime.
import { readText } from './calls.ts'
import { ConnectionError, createError, parseErrorResponse } from './errors.ts'
import { openSocket } from './socket.ts'
import { createFetchTransport, type Transport } from './transport.ts'

const { send } = createFetchTransport()
const NO_HEADERS = {
  code: 'invalid_request',
  message:
    'The WebSocket of this runtime sends no API key. Set globalThis.WebSocket to that of the package ws; in a browser, use a transport whose connect() sends a ticket.',
  status: 400,
}

export const fetchTransport: Transport = {
  send,
  async connect({ url, headers, signal }, handlers) {
    try {
      // Node, Bun and Deno accept headers.
      return await openSocket(url, { headers }, handlers, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof ConnectionError)) throw createError({ ...NO_HEADERS, cause: error })
      // The runtime hides the response. A plain request is refused before the coordinator requires a WebSocket.
      const response = await send({ method: 'GET', url, headers, signal })
      const refusal = parseErrorResponse(response.status, await readText(response), response.headers)
      throw refusal.code === 'invalid_request' ? error : refusal
    }
  },
}
