// Prints the error that ends the command, and selects the exit code.
import { type Command, CommanderError } from 'commander'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printError } from '../output/print-error.ts'
import { explainOrder } from './argument-order.ts'
import { findTypedCommand } from './typed-command.ts'
import { toUsageError } from './usage-error.ts'

/** Returns the exit code. @param words the arguments from the command on */
export function reportError(error: unknown, program: Command, words: readonly string[]): number {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
  const failureExitCode = getFailureExitCode(words)
  // commander has printed the help of `box` without a command.
  if (error instanceof CommanderError && error.code === 'commander.help') return failureExitCode ?? EXIT.usage
  const cliError = toCliError(error, program, words)
  printError(cliError)
  return failureExitCode ?? cliError.exitCode
}

/**
 * The exit code of failures of `box` itself, for commands that exit with the code of a program on the box. Other commands
 * return null.
 */
export function getFailureExitCode([name = '', ...args]: readonly string[]): number | null {
  if (['ssh', 'shell', 'attach'].includes(name)) return EXIT.terminalFailed
  const isFollow = name === 'logs' && args.some((arg) => /^-t?f/.test(arg) || arg === '--follow')
  return name === 'exec' || name === 'run' || isFollow ? EXIT.execFailed : null
}

/** @param words the arguments from the command on */
export function toCliError(error: unknown, program: Command, words: readonly string[]): CliError {
  if (error instanceof CliError) return explainOrder(error, findTypedCommand(program, words))
  if (error instanceof CommanderError) return toUsageError(error, program, words)
  // Any other error is a bug: print the stack for the bug report.
  return new CliError(EXIT.failed, error instanceof Error ? (error.stack ?? error.message) : String(error))
}
