// Forwards a request body from a client to a box over a dial-back connection.
import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream'
import { pipeline, finished as whenFinished } from 'node:stream/promises'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER, TRANSFER_LENGTH_HEADER } from '../../shared/protocol.ts'
import { assertTransfers } from '../agents/tunnel/agent-errors.ts'
import type { TransferConnection } from '../agents/tunnel/types.ts'
import { releaseSentChunks } from '../base/release-sent-chunks.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { maxResponseBytes, readAgentResponse } from './agent-response.ts'
import { boundedBytes } from './bounded-bytes.ts'
import type { EdgeContext } from './context.ts'

type UploadContext = Pick<EdgeContext, 'transfers' | 'responseParser'>

/** The agent responds when it has written the file. */
const UPLOAD_TIMEOUT_MS = 11 * 60_000

/** Content-Length in bytes; null for a chunked body. */
function declaredLength(request: IncomingMessage): number | null {
  const header = request.headers['content-length']
  if (header === undefined) return request.headers['transfer-encoding'] === undefined ? 0 : null
  return Number(header)
}

/**
 * Sends the body to the agent and returns its file.uploaded. The agent replaces the file only when the body is complete: a
 * client that disconnects, a lost box or a body over 1 GiB leaves the old file unchanged.
 */
export async function upload(
  context: UploadContext,
  { box, tunnel, signal }: AcquiredBox,
  path: string,
  request: IncomingMessage,
): Promise<Buffer> {
  const length = declaredLength(request)
  if (length !== null && length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', 'The body is larger than 1 GiB. Split it into several uploads.')
  assertTransfers(tunnel)
  const { transfers, responseParser } = context
  const pending = transfers.expect(box.id)
  const requestController = new AbortController()
  let isSending = false
  try {
    const responded = tunnel
      .call({
        method: 'PUT',
        path,
        headers: {
          [DIAL_BACK_HEADER]: pending.id,
          ...(length === null ? {} : { [TRANSFER_LENGTH_HEADER]: String(length) }),
        },
        signal: AbortSignal.any([signal, requestController.signal]),
        timeoutMs: UPLOAD_TIMEOUT_MS,
        maxBytes: maxResponseBytes('file.uploaded'),
      })
      .then(async (response) => (await readAgentResponse(responseParser, response, 'file.uploaded')).json)
    // An agent that rejects the path responds without a dial-back connection.
    const transfer = await Promise.race([pending.connection, responded.then(() => null)])
    if (transfer === null) return await responded
    isSending = true
    const sent = sendBody(request, transfer, length)
    // The agent reads no more after it has responded: stop the client.
    const stop = () => void transfer.response.destroy()
    responded.then(stop, stop)
    // An interrupted body makes the agent respond with an error, but its cause is known only here.
    const [response, sending] = await Promise.allSettled([responded, sent])
    if (sending.status === 'rejected' && sending.reason instanceof ApiError) throw sending.reason
    if (response.status === 'rejected') throw response.reason
    return response.value
  } finally {
    requestController.abort()
    if (!isSending) pending.discard()
  }
}

/** Does not use pipeline(request, …): it would destroy the request, and the rest of the body could not be discarded. */
async function sendBody(request: IncomingMessage, { response }: TransferConnection, length: number | null) {
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    ...(length === null ? {} : { 'content-length': String(length) }),
  })
  releaseSentChunks(response)
  const bounded = length === null ? boundedBytes(LIMITS.transferBytes) : null
  const sink = bounded ?? response
  const sent = bounded === null ? whenFinished(response) : pipeline(bounded, response)
  finished(request, { writable: false }, (error) => {
    if (error) sink.destroy(error)
  })
  request.pipe(sink)
  try {
    await sent
  } finally {
    request.unpipe(sink)
  }
}
