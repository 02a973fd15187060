// What is followed, beside the tunnel: a WebSocket for each stream, dialed out to the coordinator.
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { WebSocket } from 'ws'
import { BOX_HEADER, STREAM_PATH } from '../../shared/protocol.ts'
import { websocketDuplex } from '../../shared/websocket-duplex.ts'

export type StreamDialer = {
  /**
   * Dials out and sends the body as it comes, each chunk at once. Resolves when all of it was sent; rejects when the
   * coordinator refuses it, takes no more of it or is gone, and when the body errors. Then the body is destroyed. There
   * is no time limit on a coordinator that takes nothing: one that is gone without a word is noticed by the system, as
   * long as the body has something to send now and then.
   */
  bring(id: string, body: Readable): Promise<void>
}

export type StreamDialerOptions = {
  boxId: string
  /** The coordinator's http(s) URL, without a slash at its end. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  handshakeTimeoutMs?: number
}

/** The coordinator has nothing to say on it. */
const MAX_MESSAGE_BYTES = 1024

export function createStreamDialer(options: StreamDialerOptions): StreamDialer {
  const { boxId, readUrl, readToken, handshakeTimeoutMs = 10_000 } = options

  async function dial(id: string): Promise<WebSocket> {
    const url = (await readUrl()).replace(/^http/, 'ws') + STREAM_PATH + encodeURIComponent(id)
    const ws = new WebSocket(url, {
      headers: { authorization: `Bearer ${await readToken()}`, [BOX_HEADER]: boxId },
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      handshakeTimeout: handshakeTimeoutMs,
      skipUTF8Validation: true,
    })
    return new Promise((resolve, reject) => {
      ws.once('open', () => resolve(ws))
      ws.once('error', reject)
    })
  }

  return {
    async bring(id, body) {
      // An error before pipeline listens would be nobody's; pipeline finds it all the same.
      body.on('error', () => undefined)
      try {
        const ws = await dial(id)
        await pipeline(body, websocketDuplex(ws))
        ws.close(1000)
      } catch (error) {
        body.destroy()
        throw error
      }
    },
  }
}
