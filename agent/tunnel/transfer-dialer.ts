// Large bodies beside the tunnel: one plain HTTP request for each, dialed out to the coordinator.
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { BOX_HEADER, TRANSFER_PATH } from '../../shared/protocol.ts'
import { CHUNK_BYTES } from '../files/read.ts'
import type { TransferDialer } from '../files/transfer-dialer.ts'
import { fetchTransfer } from './fetch-transfer.ts'
import { inBlocks } from './in-blocks.ts'

export type TransferDialerOptions = {
  boxId: string
  /** The coordinator's http(s) URL, without a slash at its end. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  /** A connection on which nothing has moved for this long is given up. */
  idleMs?: number
}

/** Rejections and stream errors are plain Errors: what they mean to a caller is the file routes' business. */
export function createTransferDialer(options: TransferDialerOptions): TransferDialer {
  const { boxId, readUrl, readToken, idleMs = 120_000 } = options

  async function target(id: string): Promise<{ url: URL; headers: Record<string, string> }> {
    return {
      url: new URL(`${await readUrl()}${TRANSFER_PATH}${encodeURIComponent(id)}`),
      headers: { authorization: `Bearer ${await readToken()}`, [BOX_HEADER]: boxId, connection: 'close' },
    }
  }

  async function dial(method: 'GET' | 'PUT', id: string, more: Record<string, string>) {
    const { url, headers } = await target(id)
    const start = url.protocol === 'https:' ? httpsRequest : httpRequest
    // A connection of its own: nothing is pooled, nothing waits for another transfer.
    const request = start(url, { method, agent: false, headers: { ...more, ...headers } })
    request.setNoDelay(true)
    request.setTimeout(idleMs, () => request.destroy(new Error('nothing moved on the transfer')))
    return request
  }

  return {
    async fetch(id, length) {
      if (length !== null)
        return fetchTransfer({ ...(await target(id)), length, blockBytes: CHUNK_BYTES, idleMs })
      const request = await dial('GET', id, {})
      request.end()
      const response = await head(request)
      if (response.statusCode !== 200) throw refused(response)
      return { chunks: inBlocks(response, CHUNK_BYTES), release: () => response.destroy() }
    },
    async send(id: string, headers: Record<string, string>, body: AsyncIterable<Buffer>) {
      // An error before pipeline listens would be nobody's; pipeline finds it all the same.
      if (body instanceof Readable) body.on('error', () => undefined)
      const request = await dial('PUT', id, headers).catch((error: unknown) => {
        if (body instanceof Readable) body.destroy()
        throw error
      })
      const answered = head(request)
      // pipeline destroys the request when the body errors: the connection breaks, and never ends. It asks for the next
      // chunk when the request has drained, which after one of 64 KiB or more means that it has been sent.
      const [sent, answer] = await Promise.allSettled([pipeline(body, request), answered])
      if (answer.status === 'fulfilled' && (answer.value.statusCode ?? 500) >= 300)
        throw refused(answer.value)
      if (sent.status === 'rejected') throw sent.reason
      if (answer.status === 'rejected') throw answer.reason
      answer.value.resume()
    },
  }
}

function head(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve)
    request.on('error', reject)
    request.once('close', () => reject(new Error('the transfer was closed')))
  })
}

function refused(response: IncomingMessage): Error {
  response.destroy()
  return new Error(`the transfer was refused with status ${response.statusCode}`)
}
