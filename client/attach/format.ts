// The limits and binary messages of an attached WebSocket: see shared/attach-format.ts, whose values a test compares.

export type OutputChannel = 'stdout' | 'stderr'
/** In bytes. */
export type Offsets = { stdout: number; stderr: number }
export type TerminalSize = { cols: number; rows: number }

/** The first byte of a binary message. */
export const CHANNELS = { stdin: 0, stdout: 1, stderr: 2 } as const

export const ATTACH_LIMITS = {
  /** The most bytes after the channel byte of a binary message. */
  chunkBytes: 64 * 1024,
  /** The server sends at most this many bytes of stdout and stderr together beyond the client's last `ack`. */
  outputWindowBytes: 4 * 1024 * 1024,
  /** The client sends at most this many bytes of stdin beyond the server's last `stdin` message. */
  stdinWindowBytes: 1024 * 1024,
  /** The largest text message. */
  textBytes: 32 * 1024,
} as const

/** Larger than the screen and scrollback of any terminal. */
export const MAX_SCREEN_BYTES = 64 * 1024 * 1024

/** Names of terminal sessions. */
export const SESSION_NAME_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/

/** Prefixes the channel byte. */
export function encodeChunk(channel: keyof typeof CHANNELS, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(bytes.length + 1)
  message[0] = CHANNELS[channel]
  message.set(bytes, 1)
  return message
}

export function concatBytes(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
