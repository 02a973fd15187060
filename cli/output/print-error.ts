// Prints errors on stderr: as text, or with --json as one JSON object per line.
import type { Command } from 'commander'
import { replaceCommandName } from '../command-name.ts'
import { type CliError, EXIT } from './exit-codes.ts'
import { formatJson, printMessage, printStderr } from './print.ts'

export const findCommand = (program: Command, word: string | undefined): Command | undefined =>
  program.commands.find((command) => command.name() === word || (word && command.aliases().includes(word)))

let isJson = (): boolean => false

/** Errors are JSON when the result would be. @param words the arguments from the command on */
export function selectErrorFormat(program: Command, words: readonly string[]): void {
  isJson = () => isJsonRequested(program, words)
}

export function printError(error: CliError): void {
  if (isJson())
    printStderr(formatJson({ error: { ...error.fields, code: getCode(error), message: getMessage(error) } }))
  else printMessage(error.message)
}

/** Searches all words, because --json may stand before or after wrong usage. */
function isJsonRequested(program: Command, [name, ...args]: readonly string[]): boolean {
  const options = findCommand(program, name)?.opts() ?? {}
  if (options.json === true || options.output === 'json') return true
  const separator = args.indexOf('--')
  // Without --, the command on the box may have an option --json.
  if (separator < 0 && name === 'exec') return false
  return args
    .slice(0, separator < 0 ? args.length : separator)
    .some(
      (word, index, words) =>
        word === '--json' ||
        word === '-ojson' ||
        word === '--output=json' ||
        (word === 'json' && ['-o', '--output'].includes(words[index - 1] ?? '')),
    )
}

/** The codes of errors without a code of the API, by exit code. */
const CODES = new Map<number, string>([
  [EXIT.usage, 'usage'],
  [EXIT.unreachable, 'unreachable'],
  [EXIT.notAuthenticated, 'not_authenticated'],
  [EXIT.notFound, 'not_found'],
])

const getCode = ({ code, exitCode }: CliError): string => code ?? CODES.get(exitCode) ?? 'failed'

/** Removes the code of the API, with which a message for people ends. */
function getMessage({ code, message }: CliError): string {
  const suffix = ` (${code})`
  return replaceCommandName(message.endsWith(suffix) ? message.slice(0, -suffix.length) : message)
}
