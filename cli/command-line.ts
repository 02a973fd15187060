// Prepares the arguments of box for commander: options of box itself, other words for commands, unknown commands.
import type { Command } from 'commander'
import { findCommand } from './usage-error.ts'

/** Words of other tools for the same commands. Help does not list them. */
const ALIASES = new Map([
  ['log', 'logs'],
  ['copy', 'cp'],
  ['scp', 'cp'],
  ['inspect', 'show'],
  ['describe', 'show'],
  ['info', 'show'],
  ['processes', 'ps'],
  ['jobs', 'ps'],
  ['reboot', 'restart'],
])

/** `words` start with the command; the options of box itself precede them in `args`. */
export type CommandLine = { args: string[]; words: string[] }

export function parseCommandLine(program: Command, argv: readonly string[]): CommandLine {
  const start = argv.findIndex((word) => !word.startsWith('-'))
  if (start < 0) return { args: [...argv], words: [] }
  const words = argv.slice(start)
  const position = words[0] === 'help' && words.length > 1 ? 1 : 0
  const command = ALIASES.get(words[position] ?? '') ?? words[position] ?? ''
  words[position] = command
  // For `box help UNKNOWN` and `box UNKNOWN --help`, commander prints the help of box without an error.
  if (command !== 'help' && !command.startsWith('-') && !findCommand(program, command))
    return { args: [command], words: [command, ...words.slice(position + 1)] }
  return { args: [...argv.slice(0, start), ...words], words }
}
