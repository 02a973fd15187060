// The destination of a pino log. A log that cannot be written, for example on a full disk, must not stop the program.

/**
 * Drops the lines that cannot be written. The first line after them contains their number.
 * @param write writes synchronously and returns the number of written bytes, which may be fewer than all
 * @param format formats a line of JSON. Default: unchanged
 */
export function createLogDestination(
  write: (bytes: Uint8Array) => number,
  format: (line: string) => string = (line) => line,
): { write(line: string): void } {
  let droppedLines = 0
  let isLineIncomplete = false

  function writeAll(text: string): boolean {
    let bytes: Uint8Array = Buffer.from(text)
    const { length } = bytes
    try {
      while (bytes.length > 0) bytes = bytes.subarray(write(bytes))
      return true
    } catch {
      isLineIncomplete ||= bytes.length < length
      return false
    }
  }

  return {
    write(line) {
      const separator = isLineIncomplete ? '\n' : ''
      const notice =
        droppedLines === 0
          ? ''
          : format(`${JSON.stringify({ level: 50, droppedLines, msg: 'lines of the log were dropped' })}\n`)
      if (writeAll(separator + notice + format(line))) {
        droppedLines = 0
        isLineIncomplete = false
      } else {
        droppedLines += 1
      }
    },
  }
}
