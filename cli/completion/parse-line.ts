// Finds what the word at the cursor is: a command, an option, or the value of an option or argument.

import type { Argument, Command, Option } from 'commander'
import { parseCommandLine } from '../arguments/command-line.ts'
import { findCommand } from '../output/print-error.ts'

export type CompletionTarget =
  /** `of`: box itself, or a command with subcommands. */
  | { kind: 'command'; of: Command }
  | { kind: 'option'; command: Command }
  /** `words` are the previous arguments of the command, without options. `prefix` precedes the value, as in `--tier=`. */
  | { kind: 'value'; command: Command; of: Argument | Option; words: string[]; prefix: string }
  /** A word that is not completed, such as the command to run on a box. */
  | { kind: 'none' }

/** @param line the words after `box` up to the cursor; the one at the cursor is incomplete and may be empty */
export function parseLine(program: Command, line: readonly string[]): CompletionTarget {
  const { args: previous, words } = parseCommandLine(
    line.slice(0, -1),
    (word) => findCommand(program, word) !== undefined,
  )
  const last = line.at(-1) ?? ''
  const index = words.length === 0 ? -1 : Math.max(0, previous.length - words.length)
  const profile = program.options.find(({ long }) => long === '--profile')
  if (index < 0 && previous.at(-1) === '--profile' && profile !== undefined)
    return { kind: 'value', command: program, of: profile, words: [], prefix: '' }
  if (index < 0)
    return last.startsWith('-') ? { kind: 'option', command: program } : { kind: 'command', of: program }
  const name = previous[index]
  if (name === 'help' && !last.startsWith('-'))
    return index === previous.length - 1 ? { kind: 'command', of: program } : { kind: 'none' }
  const command = findCommand(program, name)
  if (command === undefined) return { kind: 'none' }
  return parseSubcommand(command, previous.slice(index + 1), last)
}

function parseSubcommand(command: Command, previous: readonly string[], last: string): CompletionTarget {
  const subcommand = findCommand(command, previous[0])
  return subcommand === undefined
    ? parseCommand(command, previous, last)
    : parseSubcommand(subcommand, previous.slice(1), last)
}

function parseCommand(command: Command, previous: readonly string[], last: string): CompletionTarget {
  const words: string[] = []
  let pendingOption: Option | null = null
  let areOptionsAllowed = true
  for (const word of previous) {
    if (pendingOption !== null) pendingOption = null
    else if (areOptionsAllowed && word === '--') areOptionsAllowed = false
    else if (areOptionsAllowed && word.startsWith('-') && word !== '-')
      pendingOption = findPendingOption(command, word)
    else words.push(word)
  }
  if (pendingOption !== null) return { kind: 'value', command, of: pendingOption, words, prefix: '' }
  const argument = command.registeredArguments[words.length] ?? command.registeredArguments.at(-1)
  const isCommandOfBox = argument?.name() === 'command' && words.length >= command.registeredArguments.length
  if (areOptionsAllowed && last.startsWith('-') && !isCommandOfBox) {
    const [flag = '', value] = last.split('=', 2)
    if (value === undefined) return { kind: 'option', command }
    const option = command.options.find(({ long }) => long === flag)
    return option ? { kind: 'value', command, of: option, words, prefix: `${flag}=` } : { kind: 'none' }
  }
  if (argument === undefined && words.length === 0 && command.commands.length > 0)
    return { kind: 'command', of: command }
  const isTooMany = words.length >= command.registeredArguments.length && !argument?.variadic
  return argument === undefined || isTooMany
    ? { kind: 'none' }
    : { kind: 'value', command, of: argument, words, prefix: '' }
}

/** The option whose value is the next word: `--tier`, `-o`, or the last of `-it`. */
function findPendingOption(command: Command, word: string): Option | null {
  const takesValue = (option: Option | undefined) => (option?.required ? option : null)
  if (word.startsWith('--')) return takesValue(command.options.find(({ long }) => long === word))
  for (const [index, letter] of [...word.slice(1)].entries()) {
    const option = takesValue(command.options.find(({ short }) => short === `-${letter}`))
    // In -o=json and -ojson the rest of the word is the value.
    if (option !== null) return index === word.length - 2 ? option : null
  }
  return null
}
