// Asks a question with several answers on the terminal.
import { openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ReadStream } from 'node:tty'

/**
 * Repeats the question until the answer is empty or starts with one of `letters`, and returns the letter. null: an empty
 * answer, the end of input, or the signal is aborted.
 */
export async function askChoice(
  question: string,
  letters: string,
  signal: AbortSignal,
): Promise<string | null> {
  // Without `terminal`, Ctrl-C sends SIGINT to this process as usual.
  const input = openInput()
  const lines = createInterface({ input, terminal: false, signal })
  const iterator = lines[Symbol.asyncIterator]()
  try {
    for (;;) {
      process.stderr.write(question)
      const { value } = await iterator.next()
      if (value === undefined) {
        // The cursor is still in the line of the question.
        process.stderr.write('\n')
        return null
      }
      const letter = value.trim().toLowerCase().slice(0, 1)
      if (letter === '') return null
      if (letters.includes(letter)) return letter
    }
  } finally {
    lines.close()
    if (input !== process.stdin) input.destroy()
  }
}

/** A prompt that was typed ends with Ctrl-D. Then stdin is closed, and the terminal is opened again. */
const openInput = (): ReadStream =>
  process.stdin.readableEnded ? new ReadStream(openSync('/dev/tty', 'r')) : process.stdin
