// Reads the value of a secret: from a prompt that does not show it, from stdin, or from a variable of this environment.
import { LIMITS } from '../../shared/limits.ts'
import { createLineReader } from '../login/read-line.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export type ValueSource = { fromEnv?: string }

/** @throws CliError; no message contains the value */
export async function readValue(
  name: string,
  { fromEnv }: ValueSource,
  signal: AbortSignal,
): Promise<string> {
  const value = await readText(name, fromEnv, signal)
  assertValue(name, value)
  return value
}

/** @throws CliError for a value that a secret cannot have */
export function assertValue(name: string, value: string): void {
  if (value === '') throw new CliError(EXIT.usage, `The value of ${name} is empty.`)
  if (/(?![\t\r\n])\p{Cc}/u.test(value))
    throw new CliError(
      EXIT.usage,
      `The value of ${name} has control characters. Only tabs and line breaks are possible.`,
    )
  if (Buffer.byteLength(value) > LIMITS.secretValueBytes)
    throw new CliError(
      EXIT.usage,
      `The value of ${name} is larger than ${LIMITS.secretValueBytes / 1024} KiB.`,
    )
}

async function readText(name: string, fromEnv: string | undefined, signal: AbortSignal): Promise<string> {
  if (fromEnv !== undefined) {
    const value = process.env[fromEnv]
    if (value !== undefined) return value
    throw new CliError(EXIT.usage, `${sanitize(fromEnv)} is not set in this environment.`)
  }
  if (!process.stdin.isTTY) return readStdin(signal)
  // The terminal would show what is typed.
  if (!process.stderr.isTTY)
    throw new CliError(
      EXIT.usage,
      'The prompt for the value needs stderr on the terminal. Or pipe the value.',
    )
  const reader = createLineReader(signal)
  try {
    return await reader.ask(`Value of ${name}: `, { isHidden: true })
  } finally {
    reader.close()
  }
}

/** Removes one newline at the end, and keeps those between lines. Reads no more than is needed to see that the value is too large. */
async function readStdin(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin.iterator({ destroyOnReturn: true })) {
    signal.throwIfAborted()
    chunks.push(chunk)
    length += chunk.length
    if (length > LIMITS.secretValueBytes + 2) break
  }
  return Buffer.concat(chunks)
    .toString()
    .replace(/\r?\n$/, '')
}
