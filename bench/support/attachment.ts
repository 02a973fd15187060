// Attaches to a command or a terminal session: one WebSocket, whose output is acknowledged and discarded.
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { encodeChunk } from '../../shared/attach-format.ts'
import type { Boxwood } from './boxwood.ts'

export type Attachment = {
  /** Resolves with the first message of the server. */
  attached: Promise<void>
  /** Resolves after the exit of the command, when the connection is closed. */
  exited: Promise<void>
  onOutput(listener: () => void): void
  sendStdin(bytes: Buffer): void
  close(): void
}

/** @param path the route of the box with its query */
export async function openAttachment({ url, key, box }: Boxwood, path: string): Promise<Attachment> {
  const ws = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/box/${box.hostname}${path}`, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
  })
  let stdoutOffset = 0
  let stderrOffset = 0
  let isExited = false
  let onOutput: () => void = () => undefined
  const attached = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<void>()
  const fail = (error: Error) => {
    attached.reject(error)
    exited.reject(error)
  }
  // A caller may wait for only one of them.
  attached.promise.catch(() => undefined)
  exited.promise.catch(() => undefined)
  ws.on('message', (data: Buffer, isBinary) => {
    if (isBinary) {
      if (data[0] === 1) stdoutOffset += data.length - 1
      else stderrOffset += data.length - 1
      onOutput()
      ws.send(JSON.stringify({ type: 'ack', stdoutOffset, stderrOffset }))
      return
    }
    const message = JSON.parse(data.toString())
    if (message.type === 'attached') attached.resolve()
    // The bytes of a screen count as output until its offset replaces them.
    if (message.type === 'attached' || message.type === 'screen') {
      stdoutOffset = message.stdoutOffset - (message.bytes ?? 0)
      stderrOffset = message.stderrOffset
    }
    if (message.type === 'error') fail(new Error(`${path}: ${message.message}`))
    if (message.type !== 'exit') return
    isExited = true
    ws.send(JSON.stringify({ type: 'exitReceived' }))
  })
  ws.on('close', (code) => {
    if (isExited) exited.resolve()
    fail(new Error(`${path}: the connection closed with code ${code}`))
  })
  await once(ws, 'open')
  return {
    attached: attached.promise,
    exited: exited.promise,
    onOutput(listener) {
      onOutput = listener
    },
    sendStdin: (bytes) => ws.send(encodeChunk('stdin', bytes)),
    close: () => ws.close(1000),
  }
}
