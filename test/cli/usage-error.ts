// Parses a command line of box with wrong usage in this process, without sending a request.
import { listNeededCommands, parseCommandLine } from '../../cli/arguments/command-line.ts'
import { toCliError } from '../../cli/arguments/report-error.ts'
import type { CliError } from '../../cli/output/exit-codes.ts'
import { createProgram } from '../../cli/program.ts'
import { isCommandName } from '../../cli/register-commands.ts'

const runAction = () => Promise.reject(new Error('The action of a command was called.'))

/** Returns the error that box prints. @throws when the command line has no error */
export async function getUsageError(argv: string[]): Promise<CliError> {
  const { args, words } = parseCommandLine(argv, isCommandName)
  const actions = { runAction, runLocalAction: runAction }
  const program = await createProgram(actions, listNeededCommands(words, isCommandName))
  const error = await program.parseAsync(args, { from: 'user' }).then(
    () => new Error(`'${argv.join(' ')}' has no error.`),
    (error: unknown) => error,
  )
  return toCliError(error, program, words)
}
