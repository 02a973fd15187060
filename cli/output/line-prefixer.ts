// Adds a prefix to the lines of an output that arrives in chunks, so that the outputs of several boxes can be mixed by lines.

const NEWLINE = 0x0a
/** A longer line is split. */
const MAX_LINE_BYTES = 1024 * 1024

export type LinePrefixer = {
  /** Returns the lines that are complete, with the prefix. */
  add(bytes: Uint8Array): Buffer
  /** Returns the last line if it has no newline, with one. */
  end(): Buffer
}

export function createLinePrefixer(prefix: string): LinePrefixer {
  const start = Buffer.from(prefix)
  const newline = Buffer.from('\n')
  let pending: Uint8Array[] = []
  let pendingBytes = 0

  function end(): Buffer {
    if (pendingBytes === 0) return Buffer.alloc(0)
    const line = Buffer.concat([start, ...pending, newline])
    pending = []
    pendingBytes = 0
    return line
  }

  return {
    add(bytes) {
      const lines: Buffer[] = []
      for (let from = 0; from < bytes.length; ) {
        const limit = from + MAX_LINE_BYTES - pendingBytes
        const index = bytes.indexOf(NEWLINE, from)
        const to = Math.min(index < 0 ? bytes.length : index, limit)
        pending.push(bytes.subarray(from, to))
        pendingBytes += to - from
        const isLine = to === index
        from = isLine ? to + 1 : to
        if (isLine && pendingBytes === 0) lines.push(start, newline)
        if (isLine || pendingBytes >= MAX_LINE_BYTES) lines.push(end())
      }
      return Buffer.concat(lines)
    },
    end,
  }
}

/** Such as `fig  | `: as wide for each of the names. */
export const formatPrefix = (name: string, names: readonly string[]): string =>
  `${name.padEnd(Math.max(...names.map(({ length }) => length)))} | `
