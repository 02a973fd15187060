// Splits the output of a coding agent into lines, at \n only: JSON strings may contain other line separators. Pure.

/** A longer line is not buffered: its content is omitted. */
export const MAX_LINE_BYTES = 1024 * 1024

/** `start` and `end` are offsets in the log; `end` is after the newline. */
export type LogLine = { start: number; end: number } & (
  | { kind: 'line'; bytes: Buffer }
  /** The line is longer than MAX_LINE_BYTES. */
  | { kind: 'long' }
  /** The runner discarded these bytes before they were read, with the rest of the line in which they end. */
  | { kind: 'gap' }
)

export type LineSplitter = {
  /** Takes chunks in the order of their offsets. An offset beyond the end of the previous chunk is a gap. */
  push(offset: number, bytes: Buffer): Generator<LogLine, void, undefined>
  /** Returns the line without a newline at the end of the log. */
  end(): Generator<LogLine, void, undefined>
  /** Offset of the first line that has not been returned. */
  readonly lineStart: number
}

const NEWLINE = 0x0a

/** @param start offset of the start of a line */
export function createLineSplitter(start: number): LineSplitter {
  let lineStart = start
  /** The offset after the last chunk. */
  let next = start
  let parts: Buffer[] = []
  let isGap = false

  function takeLine(end: number): LogLine {
    const line = { start: lineStart, end }
    const bytes = parts
    lineStart = end
    parts = []
    if (isGap) {
      isGap = false
      return { ...line, kind: 'gap' }
    }
    if (end - line.start > MAX_LINE_BYTES) return { ...line, kind: 'long' }
    return { ...line, kind: 'line', bytes: bytes.length === 1 && bytes[0] ? bytes[0] : Buffer.concat(bytes) }
  }

  return {
    *push(offset, bytes) {
      if (offset > next) {
        isGap = true
        parts = []
      }
      next = offset + bytes.length
      for (let from = 0; from < bytes.length; ) {
        const newline = bytes.indexOf(NEWLINE, from)
        const to = newline === -1 ? bytes.length : newline + 1
        const isOmitted = isGap || offset + to - lineStart > MAX_LINE_BYTES
        if (isOmitted) parts = []
        else parts.push(bytes.subarray(from, to))
        from = to
        if (newline !== -1) yield takeLine(offset + to)
      }
    },
    *end() {
      if (next > lineStart) yield takeLine(next)
    },
    get lineStart() {
      return lineStart
    },
  }
}
