// Reads and writes environment variables as lines NAME=VALUE, in the format of .env files.
import { readFileSync } from 'node:fs'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { parseEnvFile } from './parse-env-file.ts'

export type Variables = Record<string, string>

/** @param path `-` is stdin @throws CliError */
export function readEnvFile(path: string): Variables {
  const parsed = parseEnvFile(decode(path, readBytes(path)))
  if ('variables' in parsed) return parsed.variables
  throw new CliError(
    EXIT.usage,
    `Line ${parsed.line} of ${describe(path)}: ${parsed.problem}. Nothing was set.`,
  )
}

const describe = (path: string): string => (path === '-' ? 'the standard input' : sanitize(path))

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new CliError(
      EXIT.usage,
      `Cannot read the variables from ${describe(path)}: ${code === 'ENOENT' ? 'no such file' : message}.`,
      { cause: error },
    )
  }
}

/** Removes the byte order mark. */
function decode(path: string, bytes: Buffer): string {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    return decoder.decode(bytes)
  } catch (error) {
    const line = findInvalidLine(bytes)
    throw new CliError(
      EXIT.usage,
      `Line ${line} of ${describe(path)}: this is not UTF-8. Save the file as UTF-8. Nothing was set.`,
      { cause: error },
    )
  }
}

/** The number of the line with the first invalid byte. */
function findInvalidLine(bytes: Buffer): number {
  let index = 0
  const valid = bytes.toString('utf8')
  const reencoded = Buffer.from(valid, 'utf8')
  while (bytes[index] === reencoded[index]) index += 1
  return bytes.subarray(0, index).filter((byte) => byte === 0x0a).length + 1
}

/** A line that parseEnvFile and Docker Compose read as the variable. */
export function formatEnvLine(name: string, value: string): string {
  if (/^[^\p{C}#'"`$\\]*$/u.test(value) && value.trim() === value) return `${name}=${value}`
  if (!/['\\\r]/.test(value)) return `${name}='${value}'`
  const escaped = value
    .replaceAll(/["\\$]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
  return `${name}="${escaped}"`
}
