// Sends a body whose progress is shown by XMLHttpRequest: fetch() does not report how much of it was sent.
import { createError } from '../../client/http/errors.ts'
import type { Transport, TransportRequest, TransportResponse } from '../../client/http/transport.ts'

export const withUploads = (transport: Transport): Transport => ({
  ...transport,
  send: (request) => (request.onProgress === undefined ? transport.send(request) : sendBody(request)),
})

function sendBody({ method, url, headers, body, signal, onProgress }: TransportRequest) {
  return new Promise<TransportResponse>((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open(method, url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded }) => onProgress?.(loaded)
    request.onload = () =>
      resolve({
        status: request.status,
        headers: { get: (name) => request.getResponseHeader(name) },
        body: toBytes(request.responseText),
      })
    request.onerror = () =>
      reject(
        createError({
          code: 'no_response',
          message: 'The upload was interrupted. The file is unchanged.',
          status: 0,
        }),
      )
    request.onabort = () => reject(signal.reason)
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(body as XMLHttpRequestBodyInit)
  })
}

async function* toBytes(text: string): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  yield new TextEncoder().encode(text)
}
