// Finds what the word at the cursor is: a command, an option, or the value of an option or argument.
import type { Argument, Command, Option } from 'commander'

export type CompletionTarget =
  | { kind: 'command' }
  | { kind: 'option'; command: Command }
  /** `words` are the previous arguments of the command, without options. `prefix` precedes the value, as in `--tier=`. */
  | { kind: 'value'; command: Command; of: Argument | Option; words: string[]; prefix: string }
  /** A word that is not completed, such as the command to run on a box. */
  | { kind: 'none' }

/** @param line the words after `box` up to the cursor; the one at the cursor is incomplete and may be empty */
export function parseLine(program: Command, line: readonly string[]): CompletionTarget {
  const previous = line.slice(0, -1)
  const last = line.at(-1) ?? ''
  const index = previous.findIndex((word) => !word.startsWith('-'))
  if (index < 0) return last.startsWith('-') ? { kind: 'option', command: program } : { kind: 'command' }
  const name = previous[index]
  if (name === 'help') return index === previous.length - 1 ? { kind: 'command' } : { kind: 'none' }
  const command = program.commands.find(
    (candidate) => candidate.name() === name || candidate.aliases().includes(name ?? ''),
  )
  return command === undefined ? { kind: 'none' } : parseCommand(command, previous.slice(index + 1), last)
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
