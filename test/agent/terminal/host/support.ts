// A terminal host that sends what a test wants, and its frames.
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createTempDir } from '../../../support/temp-dir.ts'

/** @param onConnection sends what the host sends @param dir of the session @returns `dir` */
export async function startFakeHost(
  t: Test,
  onConnection: (socket: Socket) => void,
  dir = createTempDir(t, 'host'),
): Promise<string> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    sockets.push(socket)
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(join(dir, 'socket'), resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return dir
}

export function encodeFrame(type: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from([type]), ...parts])
  const length = Buffer.alloc(4)
  length.writeUInt32LE(body.length)
  return Buffer.concat([length, body])
}

export function offsets(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length)
  values.forEach((value, index) => {
    bytes.writeBigUInt64LE(BigInt(value), 8 * index)
  })
  return bytes
}

type Hello = { start: number; end: number; cols: number; rows: number; version?: number }

export function encodeHello({ start, end, cols, rows, version = 1 }: Hello): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt16LE(cols)
  size.writeUInt16LE(rows, 2)
  return encodeFrame(3, Buffer.from([version]), offsets(start, end), size, Buffer.from([0, 0]))
}
