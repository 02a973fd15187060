// Finds the escape sequences that a user types in a terminal session, as in ssh: a tilde after a newline, then a key.

export type EscapeAction = 'disconnect' | 'detach' | 'help'

export type EscapeParser = {
  /** Returns the bytes to send, and the action of the first complete sequence. The bytes after it are in `rest`. */
  parse(input: Buffer): { bytes: Buffer; action: EscapeAction | null; rest: Buffer }
}

const TILDE = 0x7e
const ACTIONS = new Map<number | undefined, EscapeAction>([
  [0x2e, 'disconnect'], // .
  [0x64, 'detach'], // d
  [0x3f, 'help'], // ?
])

export const ESCAPE_HELP = `Escape sequences, after a newline:
  ~.  disconnect immediately; the session stays
  ~d  detach; the session stays
  ~?  this help
  ~~  send ~`

export function createEscapeParser(): EscapeParser {
  let isLineStart = true
  let hasTilde = false

  return {
    parse(input) {
      const bytes: number[] = []
      for (const [index, byte] of input.entries()) {
        const wasTilde = hasTilde
        hasTilde = false
        if (wasTilde) {
          const action = ACTIONS.get(byte)
          // As in ssh, a newline must precede the next sequence, except after ~?.
          isLineStart = action === 'help'
          if (action !== undefined)
            return { bytes: Buffer.from(bytes), action, rest: input.subarray(index + 1) }
          if (byte !== TILDE) bytes.push(TILDE)
        } else if (isLineStart && byte === TILDE) {
          hasTilde = true
          continue
        }
        bytes.push(byte)
        isLineStart = byte === 0x0d || byte === 0x0a
      }
      return { bytes: Buffer.from(bytes), action: null, rest: Buffer.alloc(0) }
    },
  }
}
