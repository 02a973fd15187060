// box env: lists, sets and removes the environment variables of a box.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import {
  createJsonOption,
  createQuietOption,
  isEnvName,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import { addHints } from '../connection/refusals.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { formatEnvLine, readEnvFile, type Variables } from '../env/env-file.ts'
import { suggestSecret } from '../env/suggest-secret.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printStderr, sanitize } from '../output/print.ts'

type Options = JsonOption & QuietOption & { unset?: string[]; file?: string[]; clear?: boolean }

export function addEnvCommand(program: Command, runAction: RunAction): void {
  program
    .command('env')
    .summary('list or set the environment variables of a box')
    .description(
      'Lists the environment variables of a box, with their values, or changes them. A change applies to commands that are ' +
        'started from then on.',
    )
    .argument('<box>', 'name or id of the box')
    .argument('[variable...]', 'NAME=VALUE sets a variable; a single NAME prints its value')
    .option('-u, --unset <name>', 'remove a variable; can be repeated', collect)
    .option('--file <path>', 'set the variables of a .env file, or of stdin with -; can be repeated', collect)
    .option('--clear', 'remove all variables first')
    .addOption(createQuietOption())
    .addOption(createJsonOption('print the variables as a JSON object'))
    .addHelpText(
      'after',
      `
Examples:
  box env fig
  box env fig TOKEN                         prints only the value
  box env fig A=1 B='two words'
  box env fig --unset A --unset B
  box env fig --file .env
  box env fig | box env plum --clear --file -

The whole list is replaced by one request: of two concurrent changes, one may be lost. A value on the command line is in the
history of your shell; --file avoids this. At most 100 variables, 64 KiB together.`,
    )
    .action((boxName: string, words: string[], options: Options) =>
      runAction(async (session) => {
        const { unset = [], file = [], clear = false } = options
        const isChange = unset.length > 0 || file.length > 0 || clear || words.some(isAssignment)
        const box = await addHints(session.client.findBox(boxName), {
          no_such_box: VERB.test(boxName) ? `\`box environments ${boxName}\` is about environments.` : null,
        })
        const variables = toVariables(box)
        if (isChange) await changeVariables(session, box, words, options)
        else if (words.length > 0) printValue(boxName, variables, words)
        else if (options.json) printJson(variables)
        else printVariables(box.hostname, variables)
        return undefined
      }),
    )
}

/** A verb of `box environments`, typed after `box env`. */
const VERB = /^(create|add|new|ls|list|show|set|unset|update|rm|delete|default|file|repo|toggle|upgrade)$/

const collect = (text: string, previous: string[] = []): string[] => [...previous, text]
const isAssignment = (word: string): boolean => word.includes('=')
const toVariables = ({ envVars }: Box): Variables =>
  Object.fromEntries(envVars.map(({ name, value }) => [name, value]))

async function changeVariables(
  { client }: Session,
  box: Box,
  words: readonly string[],
  { unset = [], file = [], clear, json, quiet }: Options,
): Promise<void> {
  const previous = toVariables(box)
  const env: Variables = clear ? {} : { ...previous }
  for (const name of unset) delete env[name]
  for (const path of file) Object.assign(env, readEnvFile(path))
  Object.assign(env, ...words.map(parseAssignment))
  const response = await client.request<{ box: Box }>('PATCH', `/boxes/${box.id}`, { env })
  if (json) printJson(toVariables(response.box))
  else if (!quiet) {
    printStderr(`${box.hostname}: ${describeChange(previous, env)}`)
    const changed = Object.keys(env).filter((name) => env[name] !== previous[name])
    suggestSecret(changed, (name) => `\`box secrets set ${name}\` and \`box mount ${box.hostname} ${name}\``)
  }
}

function parseAssignment(word: string): Variables {
  const [name = '', ...rest] = word.split('=')
  if (isAssignment(word) && isEnvName(name)) return { [name]: rest.join('=') }
  throw new CliError(EXIT.usage, `'${sanitize(word)}' must be NAME=VALUE.`)
}

/** Such as `2 set, 1 removed`. */
function describeChange(previous: Variables, env: Variables): string {
  const set = Object.keys(env).filter((name) => env[name] !== previous[name]).length
  const removed = Object.keys(previous).filter((name) => !Object.hasOwn(env, name)).length
  const parts = [...(set > 0 ? [`${set} set`] : []), ...(removed > 0 ? [`${removed} removed`] : [])]
  return parts.length > 0 ? `${parts.join(', ')}; for new commands` : 'no change'
}

/** @throws CliError when the variable is not set */
function printValue(boxName: string, variables: Variables, [name = '', ...others]: readonly string[]): void {
  if (others.length > 0)
    throw new CliError(EXIT.usage, 'Only one value can be printed. To set variables, use NAME=VALUE.')
  if (!Object.hasOwn(variables, name))
    throw new CliError(
      EXIT.notFound,
      `${sanitize(name)} is not set on ${sanitize(boxName)}. \`box env ${sanitize(boxName)}\` lists the variables.`,
    )
  print(protectTerminal(variables[name] ?? ''))
}

function printVariables(hostname: string, variables: Variables): void {
  const names = Object.keys(variables)
  for (const name of names) {
    print(protectTerminal(formatEnvLine(name, variables[name] ?? '')))
  }
  if (names.length === 0) printStderr(`No variables on ${hostname}.`)
}

/** Exact in a pipe or file. */
const protectTerminal = (text: string): string => (process.stdout.isTTY ? sanitize(text) : text)
