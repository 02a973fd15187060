// Prepares the arguments of box for commander: options of box itself, other words for commands, unknown commands.
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
  ['key', 'keys'],
  ['member', 'members'],
  ['users', 'members'],
  ['policy', 'policies'],
  ['conversation', 'conversations'],
  ['runs', 'prompts'],
  ['secret', 'secrets'],
  ['environment', 'environments'],
  ['image', 'images'],
  ['region', 'regions'],
  ['umount', 'unmount'],
])

/** Commands that list something without a verb: `box keys ls` is `box keys`. */
const LISTS =
  /^(keys?|members?|team|polic(y|ies)|audit|use|usage|secrets?|environments?|envs|images?|regions?)$/

/** These words may precede a verb, as in `docker image ls`. A box that has the name of a verb is given by its id. */
const NOUN = /^(snapshot|template)s?$/
const VERBS = new Map<string, (noun: string) => string[]>([
  ['ls', (noun) => [`${noun}s`]],
  ['list', (noun) => [`${noun}s`]],
  ['rm', (noun) => [`${noun}s`, 'rm']],
  ['delete', (noun) => [`${noun}s`, 'rm']],
  ['remove', (noun) => [`${noun}s`, 'rm']],
  ['create', (noun) => [noun]],
  ['restore', () => ['restore']],
])

const VERSION_OPTION = /^(-v|-V|--version)$/

/** The command of the completion scripts. Its arguments are the words of a command line up to the cursor. */
const COMPLETE = '__complete'

/** Shows the help of any command. */
const HELP = 'help'

/** `words` start with the command; the options of box itself precede them in `args`. */
export type CommandLine = { args: string[]; words: string[] }

type IsCommandName = (word: string) => boolean

export function parseCommandLine(argv: readonly string[], isCommandName: IsCommandName): CommandLine {
  // --profile is the only option of box itself that has a value.
  const start = argv.findIndex((word, index) => !word.startsWith('-') && argv[index - 1] !== '--profile')
  if (start < 0) return { args: [...argv], words: [] }
  const words = argv.slice(start)
  const position = words[0] === HELP && words.length > 1 ? 1 : 0
  replaceNounAndVerb(words, position)
  const command = ALIASES.get(words[position] ?? '') ?? words[position] ?? ''
  words[position] = command
  // For `box help UNKNOWN` and `box UNKNOWN --help`, commander prints the help of box without an error.
  if (!command.startsWith('-') && !isCommandName(command))
    return { args: [command], words: [command, ...words.slice(position + 1)] }
  return { args: [...argv.slice(0, start), ...words], words }
}

/**
 * The names of the commands that this command line needs; null: all, to list them, or to suggest one for a wrong name.
 * @param words the arguments from the command on; without a command, all arguments
 */
export function listNeededCommands(words: readonly string[], isCommandName: IsCommandName): string[] | null {
  const [name = ''] = words
  if (VERSION_OPTION.test(name)) return []
  if (!isCommandName(name) || name === HELP) return null
  if (name !== COMPLETE) return [name]
  const [typedName = ''] = parseCommandLine(words.slice(1, -1), isCommandName).words
  return isCommandName(typedName) && typedName !== HELP ? [name, typedName] : null
}

function replaceNounAndVerb(words: string[], position: number): void {
  const [typed = '', verb = ''] = words.slice(position, position + 2)
  if (typed === 'workspaces')
    words.splice(position, 1, 'workspace', ...(verb === '' || verb.startsWith('-') ? ['ls'] : []))
  if (LISTS.test(typed) && ['ls', 'list'].includes(verb)) words.splice(position + 1, 1)
  const noun = NOUN.exec(typed)?.[1]
  const replacement = noun === undefined ? undefined : VERBS.get(verb)?.(noun)
  if (replacement !== undefined) words.splice(position, 2, ...replacement)
}
