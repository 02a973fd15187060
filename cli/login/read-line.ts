// Asks for a line of text on the terminal, or reads it from a pipe.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CliError, EXIT } from '../output/exit-codes.ts'

export type LineReader = {
  /** @param isHidden the terminal does not show what is typed @throws CliError at the end of input; the signal's reason */
  ask(question: string, options?: { isHidden?: boolean }): Promise<string>
  close(): void
}

/** One reader reads all lines of a command: a pipe may deliver several lines at once. */
export function createLineReader(signal: AbortSignal): LineReader {
  const { stdin, stderr } = process
  let isMuted = false
  const output = new Writable({
    write(chunk, _, done) {
      if (!isMuted) stderr.write(chunk)
      done()
    },
  })
  const lines = createInterface({
    input: stdin,
    output,
    terminal: stdin.isTTY === true && stderr.isTTY,
    signal,
  })
  // In raw mode the terminal sends no signal for Ctrl-C.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const iterator = lines[Symbol.asyncIterator]()
  return {
    async ask(question, { isHidden = false } = {}) {
      signal.throwIfAborted()
      if (stdin.isTTY) stderr.write(question)
      isMuted = isHidden
      const { value } = await iterator.next()
      if (stdin.isTTY && (isMuted || value === undefined)) stderr.write('\n')
      isMuted = false
      signal.throwIfAborted()
      if (value === undefined) throw new CliError(EXIT.usage, 'The input ended before the answer.')
      return value.trim()
    },
    close: () => lines.close(),
  }
}
