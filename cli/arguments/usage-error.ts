// Converts the errors of commander, which are about wrong usage, to CliErrors with a hint.
import type { Command, CommanderError } from 'commander'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { findCommand } from '../output/print-error.ts'
import { findArgumentHint, findCommandHint, findOptionHint } from './usage-hints.ts'

/** @param words the arguments from the command on */
export function toUsageError(
  { code, message }: CommanderError,
  program: Command,
  words: readonly string[],
): CliError {
  const command = findCommand(program, words[0])
  const subcommand = command && findCommand(command, words[1])
  const name = [command, subcommand].flatMap((found) => found?.name() ?? []).join(' ')
  // An excess argument of `box secrets set` is the value of a secret.
  const [text = '', ...suggestion] = message
    .replace(/^error: /, '')
    .replace(
      /^command-argument value .* is invalid for argument '(.*)'\. Allowed choices are /,
      '$1 must be one of ',
    )
    .split('\n')
    .map((line) => (name.startsWith('secrets ') ? line.replace(/(but got \d+): .*/, '$1.') : line))
  const hint = findHint(code, text, name, words)
  const help = `See '${['box', ...(name === '' ? [] : [name])].join(' ')} --help'.`
  const lines = hint ? [hint] : [...suggestion, help]
  return new CliError(EXIT.usage, [sanitize(text), ...lines].join('\n'))
}

/** @param text such as "unknown command 'login'" */
function findHint(code: string, text: string, command: string, words: readonly string[]): string | undefined {
  const word = /'([^']*)'/.exec(text)?.[1] ?? ''
  switch (code) {
    case 'commander.unknownCommand':
      return findCommandHint(word)
    case 'commander.unknownOption':
      return findOptionHint(command, word, words)
    case 'commander.missingArgument':
    case 'commander.excessArguments':
      return findArgumentHint(command)
    default:
      return undefined
  }
}
