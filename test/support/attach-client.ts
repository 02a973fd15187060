// A client of attached commands and terminals for tests: one connection, with all messages in the order of arrival.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { ClientMessage, ServerMessage } from '../../shared/api/attach.ts'
import { encodeChunk } from '../../shared/attach-format.ts'
import { waitUntil } from './wait-until.ts'

export type AttachedOutput = { channel: number; bytes: Buffer }
export type AttachClient = ReturnType<typeof createAttachClient>

/** The response to a refused connection. */
export class RefusedError extends Error {
  readonly status: number
  readonly text: string
  constructor(status: number, text: string) {
    super(`refused with status ${status}: ${text}`)
    this.status = status
    this.text = text
  }
}

/** @param url http://, with path and query. Rejects with RefusedError. */
export async function connectAttachClient(
  url: string,
  headers: Record<string, string>,
  options: { autoAck?: boolean; protocols?: string[] } = {},
): Promise<AttachClient> {
  const ws = new WebSocket(url.replace(/^http/, 'ws'), options.protocols ?? [], {
    headers,
    perMessageDeflate: false,
  })
  const client = createAttachClient(ws, options)
  const refused = once(ws, 'unexpected-response').then(async ([request, response]) => {
    const text = Buffer.concat(await (response as IncomingMessage).toArray()).toString()
    request.destroy()
    throw new RefusedError(response.statusCode ?? 0, text)
  })
  refused.catch(() => undefined)
  await Promise.race([once(ws, 'open'), refused])
  return client
}

/** @param options.autoAck acknowledges all output. Default: true. */
function createAttachClient(ws: WebSocket, { autoAck = true }: { autoAck?: boolean }) {
  const messages: ServerMessage[] = []
  const chunks: AttachedOutput[] = []
  const position = { stdoutOffset: 0, stderrOffset: 0 }
  /** Bytes of a terminal's screen that are still to arrive. They are not output. */
  let screenBytes = 0
  let closeCode: number | null = null
  let onOutput: ((output: AttachedOutput) => void) | null = null
  let onMessage: ((message: ServerMessage) => void) | null = null
  const closed = new Promise<number>((resolve) =>
    ws.once('close', (code) => {
      closeCode = code
      resolve(code)
    }),
  )
  ws.on('error', () => undefined)
  const send = (message: ClientMessage) => ws.send(JSON.stringify(message), () => undefined)
  ws.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) {
      const message = JSON.parse(data.toString()) as ServerMessage
      if (message.type === 'attached' || message.type === 'skipped' || message.type === 'screen') {
        position.stdoutOffset = message.stdoutOffset
        position.stderrOffset = message.stderrOffset
      }
      if (message.type === 'screen') screenBytes = message.bytes
      messages.push(message)
      return onMessage?.(message)
    }
    const output = { channel: data[0] ?? -1, bytes: data.subarray(1) }
    const ofScreen = Math.min(screenBytes, output.bytes.length)
    screenBytes -= ofScreen
    if (output.channel === 1) position.stdoutOffset += output.bytes.length - ofScreen
    else position.stderrOffset += output.bytes.length
    if (onOutput === null) chunks.push(output)
    else onOutput(output)
    if (autoAck) send({ type: 'ack', ...position })
  })
  const find = <T extends ServerMessage['type']>(type: T) =>
    messages.find((message): message is Extract<ServerMessage, { type: T }> => message.type === type)
  const text = (channel: number) =>
    Buffer.concat(chunks.filter((chunk) => chunk.channel === channel).map(({ bytes }) => bytes))

  return {
    ws,
    messages,
    chunks,
    /** The offsets after the received output. */
    position,
    send,
    sendStdin: (bytes: Uint8Array | string) =>
      ws.send(encodeChunk('stdin', typeof bytes === 'string' ? Buffer.from(bytes) : bytes), () => undefined),
    find,
    /** Output is passed to the callback instead of being kept in `chunks`. */
    takeOutput(callback: (output: AttachedOutput) => void) {
      onOutput = callback
      for (const chunk of chunks.splice(0)) callback(chunk)
    },
    /** Bytes of the last terminal screen that have not arrived. */
    pendingScreenBytes: () => screenBytes,
    /** Messages are passed to the callback too. */
    observeMessages(callback: (message: ServerMessage) => void) {
      onMessage = callback
      for (const message of messages) callback(message)
    },
    stdout: () => text(1).toString(),
    stderr: () => text(2).toString(),
    closed,
    closeCode: () => closeCode,
    /** Resolves with the first message of this type. */
    waitFor: <T extends ServerMessage['type']>(type: T) =>
      waitUntil(`a message ${type}`, async () => {
        const message = find(type)
        if (message === undefined && closeCode !== null)
          throw new Error(`closed with ${closeCode} before ${type}; messages: ${JSON.stringify(messages)}`)
        return message
      }),
    /** Cuts the connection. */
    cut: () => ws.terminate(),
    close: () => ws.close(1000),
  }
}
