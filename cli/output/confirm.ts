// Asks a question on the terminal before something is deleted.
import { createInterface } from 'node:readline'

/** Scripts get no questions. @param json results are printed as JSON; they are usually read by a program */
export const canAsk = (json: boolean): boolean =>
  process.stdin.isTTY && process.stderr.isTTY && !(json && !process.stdout.isTTY)

/** True for y or yes; false for any other answer and at the end of input. @throws the signal's reason */
export async function confirm(question: string, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted()
  // Without `terminal`, Ctrl-C sends SIGINT to this process as usual.
  const lines = createInterface({ input: process.stdin, terminal: false, signal })
  process.stderr.write(`${question} [y/N] `)
  try {
    const { value } = await lines[Symbol.asyncIterator]().next()
    // After Ctrl-C and Ctrl-D the cursor is still in the line of the question.
    if (value === undefined) process.stderr.write('\n')
    signal.throwIfAborted()
    return /^y(es)?$/i.test(value?.trim() ?? '')
  } finally {
    lines.close()
  }
}
