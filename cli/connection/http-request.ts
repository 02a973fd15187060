// Sends one HTTP request. node:http rather than fetch: it loads faster and transfers 1 GiB bodies faster.
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { Transport, TransportRequest, TransportResponse } from '../../client/http/transport.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

// An import of node:http reads all its exports, of which WebSocket loads undici: this adds 45 ms to every start.
const { Agent, request: requestHttp } = process.getBuiltinModule('node:http')
const { Readable } = process.getBuiltinModule('node:stream')

/** Reuses one connection for the requests of a command. An idle connection does not keep the process alive. */
const agent = new Agent({ keepAlive: true })

/**
 * Resolves when the response headers arrive. Rejects with the system's error, or with a CliError when the request body
 * cannot be read.
 */
export const sendRequest: Transport['send'] = async ({ method, url, headers, body, signal }) => {
  const isHttps = url.startsWith('https:')
  const send = isHttps ? (await import('node:https')).request : requestHttp
  const options: RequestOptions = { method, headers, ...(isHttps ? {} : { agent }) }
  return new Promise<TransportResponse>((resolve, reject) => {
    const request = send(url, options)
    request.once('response', (response) => {
      // A response before the end of the request body is an error response: do not send the rest.
      if (!request.writableEnded) response.once('close', () => request.destroy())
      const hasBody = method !== 'HEAD' && response.statusCode !== 204
      if (!hasBody) response.resume()
      resolve({
        status: response.statusCode ?? 0,
        headers: getHeaders(response),
        body: hasBody ? response : null,
      })
    })
    request.on('error', reject)
    // Not the option `signal`: its error would end the process when the response is just complete, as then its socket has no listener.
    const onAbort = () => void request.destroy()
    signal.addEventListener('abort', onAbort)
    request.once('close', () => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
    writeBody(request, body)
  })
}

/** Several values of a header are joined, as by `Headers` of fetch(). */
export const getHeaders = ({ headersDistinct }: IncomingMessage): TransportResponse['headers'] => ({
  get: (name) => headersDistinct[name]?.join(', ') ?? null,
})

function writeBody(request: ClientRequest, body: TransportRequest['body']): void {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body)
  else pipeBody(request, body as AsyncIterable<Uint8Array>)
}

/** If the source fails, destroys the request: the server must not take the partial body for a complete one. */
function pipeBody(request: ClientRequest, source: AsyncIterable<Uint8Array>): void {
  const stream = source instanceof Readable ? source : Readable.from(source, { objectMode: false })
  stream.once('error', (error) => {
    request.destroy(
      error instanceof CliError
        ? error
        : new CliError(EXIT.failed, `Cannot read the data to send: ${error.message}.`, { cause: error }),
    )
  })
  request.once('response', () => {
    if (!request.writableEnded) stream.unpipe(request)
  })
  request.once('close', () => stream.destroy())
  stream.pipe(request)
}
