// Reads the body of a request when it may contain placeholders that are replaced: a form or JSON of a limited size. Other bodies
// are streams, and are not read here.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BrokerError } from './broker-error.ts'
import type { BodyFormat } from './substitute-body.ts'

export const MAX_BODY_BYTES = 64 * 1024

export type SmallBody = { content: Buffer; format: BodyFormat }

/**
 * null: the body is sent as a stream.
 * @throws BrokerError when the client closes the connection before the end of the body
 */
export async function readSmallBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<SmallBody | null> {
  const format = getFormat(request)
  if (format === null || !isReadable(request)) return null
  if (request.headers.expect !== undefined) response.writeContinue()
  const content = await readAll(request)
  return content && { content, format }
}

function getFormat({ headers }: IncomingMessage): BodyFormat | null {
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type === 'application/x-www-form-urlencoded') return 'form'
  return type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type) ? 'json' : null
}

function isReadable({ headers }: IncomingMessage): boolean {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (coding !== 'identity') return false
  if (headers['transfer-encoding'] === undefined) {
    const length = Number(headers['content-length'] ?? 0)
    return length > 0 && length <= MAX_BODY_BYTES
  }
  // The host decides whether the client sends a body of unknown length, and gets its trailers.
  return headers.expect === undefined && headers.trailer === undefined
}

/** null: the body is larger, and can be read from its start. */
function readAll(request: IncomingMessage): Promise<Buffer | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | null>()
  const chunks: Buffer[] = []
  let length = 0
  const onData = (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length > MAX_BODY_BYTES) finish(null)
  }
  const onEnd = () => finish(Buffer.concat(chunks))
  const onClose = () => {
    stop()
    reject(new BrokerError('bad_request', 'The connection was closed before the end of the body.'))
  }
  const stop = () => request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
  function finish(content: Buffer | null): void {
    stop()
    if (content === null) {
      request.pause()
      request.unshift(Buffer.concat(chunks))
    }
    resolve(content)
  }
  request.on('data', onData).once('end', onEnd).once('close', onClose).once('error', onClose)
  return promise
}
