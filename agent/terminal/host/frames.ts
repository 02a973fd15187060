// The messages between the agent and a terminal host, which native/terminal.c describes. Any process of the user of the box can
// run as the host: what it sends is bounded and checked.
import { TERMINAL_HOST_VERSIONS } from '../../../shared/agent-build.ts'
import type { Snapshot } from '../screen.ts'

/** native/terminal.c has the same value. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024
const MAX_CLIENT_ID_BYTES = 64
const MAX_SIZE = 1000
const SCREEN_HEAD_BYTES = 12

const FROM_HOST = { client: 1, screen: 2, hello: 3, output: 4, written: 5, exit: 6 } as const
const FROM_AGENT = { input: 16, resize: 17, limits: 18, storeScreen: 19, close: 20 } as const

export type HostFrame =
  | { type: 'client'; id: string; accepted: number }
  | { type: 'screen'; screen: Snapshot }
  | {
      type: 'hello'
      version: number
      start: number
      end: number
      cols: number
      rows: number
      isWriting: boolean
      hasExited: boolean
    }
  | { type: 'output'; offset: number; bytes: Buffer }
  | { type: 'written' }
  | { type: 'exit'; exitCode: number; signal: number; finishedAt: number }

/** Bytes of the input of a client. */
export type ClientBytes = { client: string | undefined; offset: number; bytes: Buffer }

function encode(type: number, ...parts: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32LE(parts.reduce((sum, { length }) => sum + length, 1))
  head.writeUInt8(type, 4)
  return Buffer.concat([head, ...parts])
}

const encodeOffsets = (...offsets: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(8 * offsets.length)
  offsets.forEach((offset, index) => {
    bytes.writeBigUInt64LE(BigInt(offset), 8 * index)
  })
  return bytes
}

const encodeSize = (cols: number, rows: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16LE(cols)
  bytes.writeUInt16LE(rows, 2)
  return bytes
}

/** Without bytes, the frame makes the client known. */
export function encodeInput({ client = '', offset, bytes }: ClientBytes): Buffer {
  const id = Buffer.from(client)
  return encode(FROM_AGENT.input, encodeOffsets(offset), Buffer.from([id.length]), id, bytes)
}

export const encodeResize = (cols: number, rows: number): Buffer =>
  encode(FROM_AGENT.resize, encodeSize(cols, rows))

/** Up to which offset the host reads the output: while the agent is connected, and while none is. */
export const encodeLimits = (connected: number, offline: number): Buffer =>
  encode(FROM_AGENT.limits, encodeOffsets(connected, offline))

/** null: the screen is too large for a frame. */
export function encodeStoreScreen({ offset, cols, rows, bytes }: Snapshot): Buffer | null {
  if (SCREEN_HEAD_BYTES + bytes.length >= MAX_FRAME_BYTES) return null
  return encode(FROM_AGENT.storeScreen, encodeOffsets(offset), encodeSize(cols, rows), bytes)
}

export const encodeClose = (): Buffer => encode(FROM_AGENT.close)

/** Splits the bytes of a connection into frames. @throws Error for an invalid frame */
export function createFrameReader(): { read(chunk: Buffer): Iterable<HostFrame> } {
  let chunks: Buffer[] = []
  let buffered = 0
  let needed = 4
  return {
    *read(chunk) {
      chunks.push(chunk)
      buffered += chunk.length
      if (buffered < needed) return
      let rest = Buffer.concat(chunks)
      for (needed = 4; rest.length >= needed; needed = 4) {
        const length = rest.readUInt32LE()
        if (length === 0 || length > MAX_FRAME_BYTES) throw new Error(`a frame has ${length} bytes`)
        needed += length
        if (rest.length < needed) break
        const frame = decode(rest.readUInt8(4), rest.subarray(5, needed))
        rest = rest.subarray(needed)
        yield frame
      }
      chunks = [rest]
      buffered = rest.length
    },
  }
}

/** @throws Error */
function decode(type: number, body: Buffer): HostFrame {
  switch (type) {
    case FROM_HOST.client:
      if (body.length < 9 || body.length > 8 + MAX_CLIENT_ID_BYTES) break
      return { type: 'client', accepted: readOffset(body, 0), id: body.toString('latin1', 8) }
    case FROM_HOST.screen: {
      if (body.length < SCREEN_HEAD_BYTES) break
      const bytes = Buffer.from(body.subarray(SCREEN_HEAD_BYTES))
      return { type: 'screen', screen: { offset: readOffset(body, 0), ...readSize(body, 8), bytes } }
    }
    case FROM_HOST.hello: {
      if (body.length !== 23) break
      const version = body.readUInt8()
      if (!TERMINAL_HOST_VERSIONS.includes(version)) throw new Error(`the host has version ${version}`)
      const [start, end] = [readOffset(body, 1), readOffset(body, 9)]
      const flags = { isWriting: body[21] !== 0, hasExited: body[22] !== 0 }
      if (start > end || end - start > MAX_FRAME_BYTES) break
      return { type: 'hello', version, start, end, ...readSize(body, 17), ...flags }
    }
    case FROM_HOST.output:
      if (body.length < 8) break
      return { type: 'output', offset: readOffset(body, 0), bytes: Buffer.from(body.subarray(8)) }
    case FROM_HOST.written:
      return { type: 'written' }
    case FROM_HOST.exit: {
      if (body.length !== 16) break
      const [exitCode, signal] = [body.readUInt32LE(), body.readUInt32LE(4)]
      if (exitCode > 255 || signal > 64) break
      return { type: 'exit', exitCode, signal, finishedAt: readOffset(body, 8) }
    }
  }
  throw new Error(`a frame of type ${type} with ${body.length} bytes is invalid`)
}

function readOffset(body: Buffer, at: number): number {
  const offset = Number(body.readBigUInt64LE(at))
  if (!Number.isSafeInteger(offset)) throw new Error('an offset is too large')
  return offset
}

function readSize(body: Buffer, at: number): { cols: number; rows: number } {
  const [cols, rows] = [body.readUInt16LE(at), body.readUInt16LE(at + 2)]
  if (cols < 1 || rows < 1 || cols > MAX_SIZE || rows > MAX_SIZE) throw new Error('the size is invalid')
  return { cols, rows }
}
