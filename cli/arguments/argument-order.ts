// Finds arguments in the wrong order, such as `box share 3000 fig`, and says which comes first.
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { NoSuchNameError } from './no-such-name.ts'
import { formatCommandLine, isBoxArgument, type TypedCommand } from './typed-command.ts'

/** The same error, or one with the order of the arguments. */
export function explainOrder(error: CliError, { command, name }: TypedCommand): CliError {
  const [first = '', ...others] = command.args
  const { exitCode, code, fields } = error
  const explain = (problem: string, kind: string, found: string) => {
    const args = [found, first, ...others.toSpliced(others.indexOf(found), 1)]
    const text = `${problem} The ${kind} comes first: ${formatCommandLine(name, args)}.`
    return new CliError(exitCode, text, { ...(code !== null && { code }), fields, cause: error })
  }
  if (error instanceof NoSuchNameError) {
    const { kind, typed, names } = error
    const found = [others[0], others.at(-1)].find((other) => other !== undefined && names.includes(other))
    return typed === first && found !== undefined
      ? explain(`No such ${kind}: '${sanitize(typed)}'.`, kind, found)
      : error
  }
  const [argument] = command.registeredArguments
  const [second = ''] = others
  return exitCode === EXIT.usage &&
    argument !== undefined &&
    isBoxArgument(argument) &&
    !mayBeBox(first) &&
    mayBeBox(second)
    ? explain(error.message, 'box', second)
    : error
}

/** A name without a letter is one too, but is more often a port or a time. */
const mayBeBox = (text: string): boolean => /^[a-z0-9-]+$/.test(text) && /[a-z]/.test(text)
