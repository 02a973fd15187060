// Frames as a terminal host sends them.
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
