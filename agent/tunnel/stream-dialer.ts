// What is followed, beside the tunnel: a WebSocket for each stream, dialed out to the coordinator.
import type { WebSocket } from 'ws'
import { BOX_HEADER, STREAM_PATH } from '../../shared/protocol.ts'
import { createMessageWriter, type MessageWriter } from './message-writer.ts'
import { openWebSocket } from './websocket.ts'

/** Takes bytes as they come. */
export type Sink = {
  /** Has them sent at once. false: they wait behind others, and `more` will say when there is room. */
  push(bytes: Buffer): boolean
  /** That was all. */
  end(): void
}

/** Where they come from: pushed only after `more`, and as long as there is room. */
export type Source = {
  more(): void
  /** Nobody takes anything any more. Said once, also after the end. */
  stop(): void
}

export type StreamDialer = {
  /**
   * Dials out, opens the source and sends what it pushes. Resolves when all of it was taken; rejects when the
   * coordinator refuses it, takes no more of it or is gone. There is no time limit on a coordinator that takes nothing:
   * one that is gone without a word is noticed by the system, as long as the source has something to send now and then.
   */
  bring(id: string, open: (sink: Sink) => Source): Promise<void>
  /** Cuts what is under way. */
  close(): void
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
/** As much may wait to be sent before the source is held. */
const BUFFER_BYTES = 64 * 1024

export function createStreamDialer(options: StreamDialerOptions): StreamDialer {
  const { boxId, readUrl, readToken, handshakeTimeoutMs = 10_000 } = options
  const open = new Set<WebSocket>()

  async function dial(id: string): Promise<Dialed> {
    const url = (await readUrl()) + STREAM_PATH + encodeURIComponent(id)
    const ws = openWebSocket(url, {
      headers: { authorization: `Bearer ${await readToken()}`, [BOX_HEADER]: boxId },
      handshakeTimeoutMs,
      maxMessageBytes: MAX_MESSAGE_BYTES,
    })
    open.add(ws)
    ws.once('close', () => open.delete(ws))
    return { ws, write: createMessageWriter(ws, url) }
  }

  return {
    async bring(id, openSource) {
      await feed(await dial(id), openSource)
    },
    close() {
      for (const ws of open) ws.terminate()
    },
  }
}

type Dialed = { ws: WebSocket; write: MessageWriter }

/** Resolves once everything was taken, up to the end. */
function feed({ ws, write }: Dialed, openSource: (sink: Sink) => Source): Promise<void> {
  return new Promise((resolve, reject) => {
    let source: Source | undefined
    let ended = false
    let failure = new Error('the coordinator takes no more of the stream')
    const sent = (error?: Error | null) => {
      if (!error) source?.more()
    }
    ws.once('open', () => {
      source = openSource({
        push(bytes) {
          const full = ws.bufferedAmount + bytes.length >= BUFFER_BYTES
          write(bytes, full ? sent : undefined)
          return !full
        },
        end() {
          ended = true
          ws.close(1000)
        },
      })
      source.more()
    })
    // 'close' follows.
    ws.on('error', (error) => {
      failure = error
    })
    ws.once('close', (code) => {
      source?.stop()
      if (ended && code === 1000) resolve()
      else reject(failure)
    })
  })
}
