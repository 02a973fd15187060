// Finds the command in the arguments of box exec: separates it from the options that follow the box's name.
import type { Command } from 'commander'
import { shellQuote } from '../../shared/shell-quote.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

/**
 * `words` follow the name of the box. Without a leading hyphen they are the command, as in docker exec and ssh. Options
 * after the name belong to box exec only if `--` follows them; they are set on `command`.
 * @throws CliError when the command is missing, or when it is not clear which words belong to the command
 */
export function parseCommandWords(command: Command, name: string, words: readonly string[]): string[] {
  const result = isOption(words[0]) ? parseLeadingOptions(command, name, words) : [...words]
  if (result.length > 0) return result
  throw new CliError(
    EXIT.usage,
    `The command is missing. Example: ${boxCommand()} exec ${sanitize(name)} -- uname -a\nFor a terminal: ${boxCommand()} ssh ${sanitize(name)}`,
  )
}

const isOption = (word: string | undefined): boolean => word !== undefined && /^-./.test(word)

function parseLeadingOptions(command: Command, name: string, words: readonly string[]): string[] {
  const separator = words.indexOf('--')
  const leading = separator < 0 ? words : words.slice(0, separator)
  const { operands, unknown } = command.parseOptions([...leading])
  if (unknown.some((word) => word === '-h' || word === '--help')) command.help()
  if (unknown.length > 0)
    throw new CliError(
      EXIT.usage,
      `Unknown option '${sanitize(unknown[0] ?? '')}' of box exec. Write one of:\n` +
        `  ${boxCommand()} exec [options] NAME COMMAND\n  ${boxCommand()} exec NAME [options] -- COMMAND`,
    )
  if (operands.length > 0) throw unseparatedError(name, words, leading.length - operands.length)
  return separator < 0 ? [] : words.slice(separator + 1)
}

/** @param optionCount how many of the words are options and their values */
function unseparatedError(name: string, words: readonly string[], optionCount: number): CliError {
  const quote = (part: readonly string[]) => sanitize(part.map(shellQuote).join(' '))
  const options = quote(words.slice(0, optionCount))
  const rest = quote(words.slice(optionCount))
  return new CliError(
    EXIT.usage,
    `Options after the name need \`--\` before the command. Write one of:\n` +
      `  ${boxCommand()} exec ${options} ${sanitize(name)} ${rest}\n` +
      `  ${boxCommand()} exec ${sanitize(name)} ${options} -- ${rest}`,
  )
}
