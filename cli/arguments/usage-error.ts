// Converts the errors of commander, which are about wrong usage, to CliErrors that say what to type.
import type { Argument, Command, CommanderError } from 'commander'
import { shellQuote } from '../../shared/shell-quote.ts'
import { formatUsageMessage } from '../../shared/usage-message.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { findCommand } from '../output/print-error.ts'
import { FilterOption } from './options.ts'
import { findSimilarNames } from './similar-names.ts'
import { findTypedCommand, formatCommandLine, isBoxArgument, type TypedCommand } from './typed-command.ts'
import {
  findArgumentHint,
  findCommandHint,
  findOptionHint,
  findSubcommandHint,
  findValueList,
} from './usage-hints.ts'

/** `isComplete`: the hint says what to type, so the help page is not named. */
type Explanation = { text: string; hint?: string | undefined; isComplete?: boolean }

/** @param words the arguments from the command on */
export function toUsageError(
  { code, message }: CommanderError,
  program: Command,
  words: readonly string[],
): CliError {
  const typed = findTypedCommand(program, words)
  const { name } = typed
  const [first = '', ...suggestion] = formatUsageMessage(message).split('\n')
  const { text, hint, isComplete = true } = explain(code, first, typed)
  const help = `See '${['box', ...(name === '' ? [] : [name])].join(' ')} --help'.`
  const lines = hint && isComplete ? [hint] : [...(hint ? [hint] : suggestion), help]
  return new CliError(EXIT.usage, [sanitize(hideValues(text, name)), ...lines].join('\n'))
}

/** An excess argument of `box secrets set` is the value of a secret. */
const hideValues = (text: string, name: string): string =>
  name.startsWith('secrets ') ? text.replace(/(but got \d+): .*/, '$1.') : text

/** @param text such as "unknown command 'login'" */
function explain(code: string, text: string, typed: TypedCommand): Explanation {
  const word = /'([^']*)'/.exec(text)?.[1] ?? ''
  switch (code) {
    case 'commander.unknownCommand':
      return explainUnknownCommand(text, word, typed)
    case 'commander.unknownOption':
      return { text, hint: findOptionHint(typed.name, word, typed.words, findFilter(word, typed)) }
    case 'commander.missingArgument':
      return explainMissingArgument(text, word, typed)
    case 'commander.excessArguments':
      return explainExcessArguments(text, word, typed)
    default:
      return { text }
  }
}

function explainUnknownCommand(
  text: string,
  word: string,
  { command, name, words }: TypedCommand,
): Explanation {
  const hint = name === '' ? findCommandHint(word) : findSubcommandHint(name, word)
  if (hint !== undefined) return { text, hint }
  const names = command.commands.flatMap((candidate) => [candidate.name(), ...candidate.aliases()])
  const [similar] = findSimilarNames(word, names)
  if (name === '')
    return { text, hint: similar === undefined ? findSwappedCommand(command, words) : undefined }
  return similar === undefined
    ? { text, hint: findArgumentHint(name) }
    : { text, hint: `(Did you mean ${similar}?)`, isComplete: false }
}

/** The name of a box before a command, such as `box fig exec ls`. */
function findSwappedCommand(program: Command, words: readonly string[]): string | undefined {
  const [box = '', second, ...args] = words
  const command = findCommand(program, second)
  const [argument] = command?.registeredArguments ?? []
  if (command === undefined || argument === undefined || !isBoxArgument(argument)) return undefined
  return `The command comes first: ${formatCommandLine(command.name(), [box, ...args])}.`
}

/** @param failing the name of the command that has refused the arguments: of several, that which needs no name */
function explainExcessArguments(text: string, failing: string, typed: TypedCommand): Explanation {
  const { command, name } = typed
  const { args, registeredArguments } = command.commands.find((sub) => sub.name() === failing) ?? command
  const excess = args[registeredArguments.length] ?? ''
  const hint = findArgumentHint(name)
  if (command.commands.length === 0) return { text, hint }
  const [first = ''] = args
  if (registeredArguments.length === 0 || findSubcommandHint(name, first) !== undefined)
    return explainUnknownCommand(`unknown command '${first}'`, first, typed)
  // The user has not typed the name of a command that is the default.
  const named = text.replace(`'${failing}'`, `'${command.name()}'`)
  const subcommand = findCommand(command, excess)
  if (subcommand === undefined) return { text: named, hint }
  const line = formatCommandLine(
    `${name} ${subcommand.name()}`,
    args.filter((arg) => arg !== excess),
  )
  return { text: named, hint: `The command comes before the name: ${line}.` }
}

function explainMissingArgument(
  text: string,
  argument: string,
  { command, name }: TypedCommand,
): Explanation {
  const ownHint = findArgumentHint(name)
  if (ownHint !== undefined) return { text, hint: ownHint }
  // A command with a default has the arguments of the default.
  const { registeredArguments } = [command, ...command.commands].find(hasArgument(argument)) ?? command
  const missing = registeredArguments.slice(command.args.length).filter(({ required }) => required)
  const [first] = missing
  if (first === undefined) return { text }
  const line = formatCommandLine(name, command.args, missing.map(formatPlaceholder))
  return { text, hint: `Type ${line}. ${describeValues(first)}`, isComplete: false }
}

const hasArgument =
  (argument: string) =>
  ({ registeredArguments }: Command): boolean =>
    registeredArguments.some((candidate) => candidate.name() === argument)

/** Such as NEWNAME. */
const formatPlaceholder = (argument: Argument): string => argument.name().replaceAll('-', '').toUpperCase()

const describeValues = (argument: Argument): string =>
  isBoxArgument(argument)
    ? '`box ls` lists the boxes.'
    : (findValueList(argument.name()) ?? `${formatPlaceholder(argument)}: ${argument.description}.`)

/** Returns such as `user=ada` for an option `--user ada` of a list with such a filter. */
function findFilter(option: string, { command, words }: TypedCommand): string | undefined {
  const filter = command.options.find((candidate) => candidate instanceof FilterOption)
  const [key = '', inlineValue] = option.replace(/^--/, '').split('=')
  if (!option.startsWith('--') || !filter?.keys.includes(key)) return undefined
  const next = words[words.indexOf(option) + 1]
  const value = inlineValue ?? (next?.startsWith('-') ? undefined : next)
  return `${key}=${value === undefined ? key.toUpperCase() : sanitize(shellQuote(value))}`
}
