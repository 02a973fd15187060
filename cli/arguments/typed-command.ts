// The command that the user typed, and command lines to type instead.
import type { Argument, Command } from 'commander'
import { shellQuote } from '../../shared/shell-quote.ts'
import { sanitize } from '../output/print.ts'
import { findCommand } from '../output/print-error.ts'

/** `command` is the deepest command of the words. `name` is such as `environments repo add`, and empty for box itself. */
export type TypedCommand = { command: Command; name: string; words: readonly string[] }

/** @param words the arguments from the command on */
export function findTypedCommand(program: Command, words: readonly string[]): TypedCommand {
  let command = program
  const names: string[] = []
  for (const word of words) {
    const found = findCommand(command, word)
    if (found === undefined) break
    command = found
    names.push(found.name())
  }
  return { command, name: names.join(' '), words }
}

/** Whether the argument is the name of a box. */
export const isBoxArgument = ({ description }: Argument): boolean =>
  /\b(box's names? or ids?|names? or ids? of (a |the )?box(es)?)\b/.test(description)

/** A longer argument, such as a prompt, would hide what is wrong. */
const MAX_ARGUMENT_LENGTH = 40

/** Returns a quoted command line for a message. @param placeholders such as SECRET, for arguments that are missing */
export function formatCommandLine(
  name: string,
  args: readonly string[],
  placeholders: readonly string[] = [],
): string {
  const typed = args.map((arg) => (arg.length > MAX_ARGUMENT_LENGTH ? '…' : sanitize(shellQuote(arg))))
  return `\`${['box', name, ...typed, ...placeholders].join(' ')}\``
}
