// Bytes from a client to a box: small ones inside the tunnel, the rest on a connection that the box dials for them.
import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { fileUploaded } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER, TRANSFER_LENGTH_HEADER } from '../../shared/protocol.ts'
import type { TransferConnection, Transfers } from '../tunnel/types.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { readAgentResponse } from './agent-response.ts'
import { boundedBytes } from './bounded-bytes.ts'
import { releaseSentChunks } from './release-sent.ts'

/** What Content-Length says, in bytes; null for a chunked body, whose length nobody knows yet. */
function declaredLength(request: IncomingMessage): number | null {
  const header = request.headers['content-length']
  if (header === undefined) return request.headers['transfer-encoding'] === undefined ? 0 : null
  return Number(header)
}

/**
 * Hands the request's body to the box and answers with its file.uploaded. The box replaces its file only when every
 * byte has come: a client that leaves early, a lost box, or a body over 1 GiB leaves the old file as it was.
 */
export async function upload(
  transfers: Transfers,
  visit: AcquiredBox,
  path: string,
  request: IncomingMessage,
): Promise<Buffer> {
  const length = declaredLength(request)
  if (length !== null && length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', 'An upload holds at most 1 GiB.')
  if (length !== null && length <= TUNNEL_LIMITS.inlineBodyBytes) {
    const response = await visit.tunnel.request({
      method: 'PUT',
      path,
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(length) },
      body: request,
      signal: visit.signal,
    })
    return readAgentResponse(response, fileUploaded)
  }
  return uploadBeside(transfers, visit, path, request, length)
}

async function uploadBeside(
  transfers: Transfers,
  { box, tunnel, signal }: AcquiredBox,
  path: string,
  request: IncomingMessage,
  length: number | null,
): Promise<Buffer> {
  const transfer = transfers.expect(box.id)
  const over = new AbortController()
  try {
    const answered = tunnel
      .request({
        method: 'PUT',
        path,
        headers: {
          [DIAL_BACK_HEADER]: transfer.id,
          ...(length === null ? {} : { [TRANSFER_LENGTH_HEADER]: String(length) }),
          'content-length': '0',
        },
        signal: AbortSignal.any([signal, over.signal]),
      })
      .then((response) => readAgentResponse(response, fileUploaded))
    // A box that refuses the path answers without ever dialing.
    const dialed = await Promise.race([transfer.connection, answered.then(() => null)])
    if (dialed === null) return await answered
    const sent = send(request, dialed, length)
    // A box that has answered wants no more: a failed one would otherwise keep the client sending.
    const stop = () => void dialed.response.destroy()
    answered.then(stop, stop)
    // The box's answer decides; a body that broke off makes it a refusal, whose cause is better known here.
    const [answer, sending] = await Promise.allSettled([answered, sent])
    if (sending.status === 'rejected' && sending.reason instanceof ApiError) throw sending.reason
    if (answer.status === 'rejected') throw answer.reason
    return answer.value
  } finally {
    over.abort()
    transfer.release()
  }
}

async function send(request: IncomingMessage, { response }: TransferConnection, length: number | null) {
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    ...(length === null ? {} : { 'content-length': String(length) }),
  })
  releaseSentChunks(response)
  if (length === null) await pipeline(request, boundedBytes(LIMITS.transferBytes), response)
  else await pipeline(request, response)
}
