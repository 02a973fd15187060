// How the client sends requests. The default uses fetch() and WebSocket of the runtime.

export type RequestBody = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>

export type TransportRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body?: RequestBody
  /** Aborts the request, and the body of the response. */
  signal: AbortSignal
}

/** A part of `Response` of fetch(). */
export type TransportResponse = {
  status: number
  headers: { get(name: string): string | null }
  /** null: there is none. */
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null
}

export type Transport = {
  /**
   * Sends a request once. It does not follow redirects: the API key goes to no other origin.
   * @returns the response, whose body is unread. Rejects when there is none, and with the reason of the signal
   */
  send(request: TransportRequest): Promise<TransportResponse>
  /** Opens a WebSocket. Resolves when it is open; rejects when it was refused. */
  connect(url: string, headers: Record<string, string>): Promise<WebSocket>
}

/** `duplex` is what fetch() requires for a stream. */
type FetchInit = RequestInit & { duplex?: 'half' }

/** @param credentials whether a page sends its cookies. Default: to its own origin */
export const createFetchTransport = (credentials?: RequestCredentials): Transport => ({
  async send({ method, url, headers, body, signal }) {
    const init: FetchInit = { method, headers, signal, redirect: 'manual' }
    if (credentials !== undefined) init.credentials = credentials
    if (body !== undefined) init.body = body
    if (body instanceof ReadableStream) init.duplex = 'half'
    return (await fetch(url, init)) as TransportResponse
  },
  connect(url, headers) {
    // Node, Bun and Deno accept headers; in a browser a ticket is sent as a subprotocol instead.
    const options = { headers } as unknown as string[]
    const socket = new WebSocket(url.replace(/^http/, 'ws'), options)
    socket.binaryType = 'arraybuffer'
    return new Promise((resolve, reject) => {
      socket.onopen = () => resolve(socket)
      socket.onerror = () => reject(new Error('the WebSocket was refused'))
    })
  },
})

export const fetchTransport: Transport = createFetchTransport()
