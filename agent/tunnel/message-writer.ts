// How an agent's messages leave: a short one as one piece, and with nothing to be told of it afterwards.
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { needsMask } from './websocket.ts'

/**
 * Sends a message, in the order of the calls, also of those to the WebSocket's own `send`.
 * @param sent called once the message was handed to the system, or failed
 */
export type MessageWriter = (bytes: Buffer, sent?: (error?: Error | null) => void) => void

/** What is larger costs more to copy than to send in two pieces. */
const SHORT_BYTES = 2048

const [FINAL_BINARY, MASKED, LENGTH_FOLLOWS] = [0x82, 0x80, 126]
const MOST_IN_HEAD = 125
const MASK_BYTES = 4

/**
 * For a WebSocket to `url` that has not opened yet. ws sends head and payload in two pieces and hears of both afterwards,
 * which for a short message costs more than the message. It is the same frame (RFC 6455, 5.2), with the mask of zeros
 * that ws would give it; all others stay with ws.
 */
export function createMessageWriter(ws: WebSocket, url: string): MessageWriter {
  if (needsMask(url)) return (bytes, sent) => ws.send(bytes, sent)
  let socket: Socket | undefined
  ws.once('upgrade', (response) => {
    socket = response.socket
  })
  return (bytes, sent) => {
    const isShort = sent === undefined && bytes.length <= SHORT_BYTES
    if (isShort && socket !== undefined && ws.readyState === ws.OPEN) socket.write(frameOf(bytes))
    else ws.send(bytes, sent)
  }
}

function frameOf(bytes: Buffer): Buffer {
  const { length } = bytes
  const inHead = length <= MOST_IN_HEAD
  const headBytes = (inHead ? 2 : 4) + MASK_BYTES
  const frame = Buffer.allocUnsafe(headBytes + length)
  frame[0] = FINAL_BINARY
  frame[1] = MASKED | (inHead ? length : LENGTH_FOLLOWS)
  if (!inHead) frame.writeUInt16BE(length, 2)
  for (let at = headBytes - MASK_BYTES; at < headBytes; at++) frame[at] = 0
  frame.set(bytes, headBytes)
  return frame
}
