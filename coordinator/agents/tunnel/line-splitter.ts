// Splits chunks of bytes into lines of bounded length.

export type LineSplitter = {
  /** The non-empty lines that the chunk completes, without their newline; null once a line is too long. */
  push(chunk: Buffer): string[] | null
}

const NEWLINE = 10

export function createLineSplitter(maxBytes: number): LineSplitter {
  let parts: Buffer[] = []
  let length = 0
  return {
    push(chunk) {
      const lines: string[] = []
      let from = 0
      while (from < chunk.length) {
        const newline = chunk.indexOf(NEWLINE, from)
        const part = chunk.subarray(from, newline === -1 ? chunk.length : newline)
        length += part.length
        if (length > maxBytes) return null
        parts.push(part)
        if (newline === -1) break
        if (length > 0)
          lines.push(parts.length === 1 ? part.toString() : Buffer.concat(parts, length).toString())
        parts = []
        length = 0
        from = newline + 1
      }
      return lines
    },
  }
}
