// Reads and writes environment variables as lines NAME=VALUE, in the format of .env files (Node's parseEnv).
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export type Variables = Record<string, string>

/** @param path `-` is stdin @throws CliError */
export function readEnvFile(path: string): Variables {
  try {
    return { ...parseEnv(readFileSync(path === '-' ? 0 : path, 'utf8')) } as Variables
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new CliError(
      EXIT.usage,
      `Cannot read the variables from ${sanitize(path)}: ${code === 'ENOENT' ? 'no such file' : message}.`,
      { cause: error },
    )
  }
}

/** A line that parseEnv reads as the variable; null if the format cannot express the value. */
export function formatEnvLine(name: string, value: string): string | null {
  const candidates = [value, `'${value}'`, `"${value}"`, `\`${value}\``, `"${value.replaceAll('\n', '\\n')}"`]
  const quoted = candidates.find((text) => {
    // A following line must not become a part of the value.
    const parsed = parseEnv(`${name}=${text}\nEND=1\n`)
    return parsed[name] === value && parsed.END === '1' && Object.keys(parsed).length === 2
  })
  return quoted === undefined ? null : `${name}=${quoted}`
}
