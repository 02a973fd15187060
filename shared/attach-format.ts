// The binary messages and limits of an attached WebSocket: GET /exec/{processId}/attach and GET /terminal. The agent's
// dial-back connection carries the same messages, and the coordinator checks and forwards each one.
//
// A binary message is one channel byte followed by raw bytes. The messages of a channel are contiguous: the `attached`
// message states the offset of the first byte. For text messages see api/attach.ts. This module does not import zod,
// whose load time the `box` command avoids.

/** The subprotocol that the server selects. A client may offer it, and must when it offers another one. */
export const ATTACH_SUBPROTOCOL = 'boxwood'
/** Followed by a ticket: offered by browsers, which cannot set headers on a WebSocket. Never selected. */
export const TICKET_SUBPROTOCOL_PREFIX = 'boxwood.ticket.'

/** The first byte of a binary message. */
export const CHANNELS = { stdin: 0, stdout: 1, stderr: 2 } as const
export type OutputChannel = 'stdout' | 'stderr'

export const ATTACH_LIMITS = {
  /** The most bytes after the channel byte of a binary message. */
  chunkBytes: 64 * 1024,
  /** The server sends at most this many bytes of stdout and stderr together beyond the client's last `ack`. */
  outputWindowBytes: 4 * 1024 * 1024,
  /** The client sends at most this many bytes of stdin beyond the server's last `stdin` message. */
  stdinWindowBytes: 1024 * 1024,
  /** The largest text message. The message of an error has at most 4096 characters. */
  textBytes: 32 * 1024,
} as const
/** The largest WebSocket message in both directions. */
export const MAX_ATTACH_MESSAGE_BYTES = ATTACH_LIMITS.chunkBytes + 1
/** Names of terminal sessions. */
export const SESSION_NAME_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/

/** Prefixes the channel byte. */
export function encodeChunk(channel: keyof typeof CHANNELS, bytes: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(bytes.length + 1)
  message[0] = CHANNELS[channel]
  message.set(bytes, 1)
  return message
}
