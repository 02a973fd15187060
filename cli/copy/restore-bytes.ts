// Restores arguments that are not UTF-8: Node replaces their bytes by U+FFFD.
import { readFileSync } from 'node:fs'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { decodePath } from './path-bytes.ts'

const REPLACEMENT = '\uFFFD'

/**
 * Returns the paths with each invalid byte as a lone surrogate (path-bytes.ts).
 * @param paths arguments in the order of the command line
 * @throws CliError where the operating system does not have the bytes, because two names could become one
 */
export function restoreBytes(paths: readonly string[]): string[] {
  const damaged = paths.find((path) => path.includes(REPLACEMENT))
  if (damaged === undefined) return [...paths]
  const remaining = readRawArguments().filter((bytes) => bytes.toString().includes(REPLACEMENT))
  return paths.map((path) => {
    if (!path.includes(REPLACEMENT)) return path
    const index = remaining.findIndex((bytes) => bytes.toString() === path)
    const [bytes] = remaining.splice(0, index + 1).slice(-1)
    if (index === -1 || bytes === undefined)
      throw new CliError(
        EXIT.usage,
        `${sanitize(path)} is not UTF-8, and its bytes are not known here. Copy the directory that contains it.`,
      )
    return decodePath(bytes)
  })
}

/** Empty on systems without /proc. */
function readRawArguments(): Buffer[] {
  try {
    const commandLine = readFileSync('/proc/self/cmdline')
    const args: Buffer[] = []
    for (let start = 0; start < commandLine.length; ) {
      const end = commandLine.indexOf(0, start)
      args.push(commandLine.subarray(start, end === -1 ? undefined : end))
      start = end === -1 ? commandLine.length : end + 1
    }
    return args
  } catch {
    return []
  }
}
