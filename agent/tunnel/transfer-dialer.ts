// Opens dial-back connections for large bodies: one HTTP request to the coordinator per transfer.
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { freeBuffer } from '../../shared/free-buffer.ts'
import { BOX_HEADER, TRANSFER_PATH_PREFIX } from '../../shared/protocol.ts'
import type { TransferDialer } from '../files/transfer-dialer.ts'
import { toRequestTarget } from './coordinator-url.ts'
import { noProxy, type SelectProxy } from './proxy.ts'

export type TransferDialerOptions = {
  boxId: string
  /** The coordinator's URL, without a trailing slash. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  /** Default: no proxy. */
  selectProxy?: SelectProxy
  /** A connection without progress for this long is closed. Default: 2 minutes. */
  idleMs?: number
}

/** Rejects with plain Errors; the file routes convert them. */
export function createTransferDialer(options: TransferDialerOptions): TransferDialer {
  const { boxId, readUrl, readToken, selectProxy = noProxy, idleMs = 120_000 } = options

  async function openRequest(method: 'GET' | 'PUT', id: string, headers: Record<string, string>) {
    const url = await readUrl()
    const target = toRequestTarget(url, TRANSFER_PATH_PREFIX + encodeURIComponent(id))
    const send = target.protocol === 'https:' ? httpsRequest : httpRequest
    // `agent: false`: a connection of its own, not from a pool.
    const request = send({
      ...target,
      method,
      agent: selectProxy(url) ?? false,
      headers: { ...headers, authorization: `Bearer ${await readToken()}`, [BOX_HEADER]: boxId },
    })
    request.setNoDelay(true)
    request.setTimeout(idleMs, () => request.destroy(new Error('the transfer made no progress')))
    return request
  }

  return {
    async fetch(id, length) {
      const request = await openRequest('GET', id, {})
      // The HTTP parser's listener, attached before this event, has copied the body out of each chunk of the socket.
      request.once('socket', (socket) => socket.on('data', freeBuffer))
      request.end()
      const response = await waitForResponse(request)
      if (response.statusCode !== 200) throw toRejection(response)
      if (length !== null && response.headers['content-length'] !== String(length)) {
        response.destroy()
        throw new Error(`the response does not declare ${length} bytes`)
      }
      return { chunks: response, release: () => response.destroy() }
    },
    async send(id, headers, body) {
      // An error before pipeline() attaches its listener would be unhandled.
      if (body instanceof Readable) body.on('error', () => undefined)
      const request = await openRequest('PUT', id, headers).catch((error: unknown) => {
        if (body instanceof Readable) body.destroy()
        throw error
      })
      const responded = waitForResponse(request)
      // When the body errors, pipeline() destroys the request: the connection breaks instead of ending. It requests the next
      // chunk on 'drain', when a chunk of 64 KiB or more has been written to the socket.
      const [sent, response] = await Promise.allSettled([pipeline(body, request), responded])
      if (response.status === 'fulfilled' && (response.value.statusCode ?? 500) >= 300)
        throw toRejection(response.value)
      if (sent.status === 'rejected') throw sent.reason
      if (response.status === 'rejected') throw response.reason
      response.value.resume()
    },
  }
}

function waitForResponse(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve)
    request.on('error', reject)
    request.once('close', () => reject(new Error('the transfer connection closed')))
  })
}

function toRejection(response: IncomingMessage): Error {
  response.destroy()
  return new Error(`the transfer was rejected with status ${response.statusCode}`)
}
