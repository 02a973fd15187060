// The text of a prompt: the words of the command line, or stdin.
import type { Readable } from 'node:stream'
import { LIMITS } from '../../shared/limits.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

type Input = Readable & { isTTY?: boolean }

/**
 * Several words are joined with spaces. Reads stdin for the single word `-`, and without words unless stdin is a terminal.
 * @throws CliError for a blank or too long prompt, and for text that is not UTF-8
 */
export async function readPrompt(words: readonly string[], boxName: string, stdin: Input): Promise<string> {
  const isStdin = words.length === 0 ? !stdin.isTTY : words.length === 1 && words[0] === '-'
  const prompt = isStdin ? await readText(stdin, boxName) : words.join(' ')
  if (Buffer.byteLength(prompt) > LIMITS.promptBytes) throw tooLongError(boxName)
  if (prompt.trim() !== '') return prompt
  const problem = isStdin ? 'The prompt is empty: stdin has no text.' : 'The prompt is missing.'
  throw new CliError(
    EXIT.usage,
    `${problem} Example: ${boxCommand()} prompt ${sanitize(boxName)} "fix the failing test"`,
    { code: 'prompt_required' },
  )
}

async function readText(stdin: Input, boxName: string): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    // The rest is not read: the input may be endless.
    if (length > LIMITS.promptBytes) throw tooLongError(boxName)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
  } catch (error) {
    throw new CliError(EXIT.usage, 'The prompt on stdin is not UTF-8 text.', { cause: error })
  }
}

const tooLongError = (boxName: string): CliError =>
  new CliError(
    EXIT.usage,
    `The prompt is longer than ${LIMITS.promptBytes / 1024} KiB. Copy the text to the box, and name the file in the prompt: \`box cp FILE ${sanitize(boxName)}:\``,
    { code: 'payload_too_large' },
  )
