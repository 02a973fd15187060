// box history: the commands that ran on a box.
import { type Command, Option } from 'commander'
import type { CommandList, Command as CommandRecord } from '../../shared/api/commands.ts'
import type { Client } from '../client.ts'
import { type JsonOption, jsonOption, wholeNumber } from '../options.ts'
import { age, duration, print, printJson, say, table, terminalWidth } from '../output.ts'
import { endWords, noRecord, orNone } from '../process-words.ts'
import type { Run } from '../session.ts'

type Filters = { mode?: string; status?: string; limit?: number; before?: string; all?: boolean }
type Options = JsonOption & Filters & { delete?: string; deleteAll?: boolean }

/** As in shared/api/commands.ts, which would bring zod. */
const STATUSES = 'running, exited, killed, timed_out, failed, lost'
/** The longest page that the API gives. */
const LONGEST_PAGE = 200

export function addHistory(program: Command, run: Run): void {
  program
    .command('history')
    .summary('list the commands that ran on a box')
    .description(
      'Lists the commands that ran on a box, newest first, with who ran them and how they ended. The box may be suspended.',
    )
    .argument('<name>', "the box's name or id")
    .option('--mode <mode>', 'only sync or detached ones')
    .option('--status <status>', `only those: ${STATUSES}`)
    .option('--limit <count>', 'so many at once, 1 to 200 (default 50)', wholeNumber)
    .option('--before <cursor>', 'older ones: stderr, and nextBefore in --json, say how to go on')
    .addOption(new Option('--all', 'every one').conflicts(['before', 'limit']))
    .addOption(deletes(new Option('--delete <id>', 'delete this record and its output. It does not ask.')))
    .addOption(deletes(new Option('--delete-all', 'delete every record. It does not ask.')))
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box history fig
  box history fig --status failed --limit 10
  box history fig --all --json | jq -r '.commands[] | select(.exitCode != 0) | .command'
  box output fig $ID                         what one of them printed
  box history fig --delete $ID

Deleting a record leaves the command alone; \`box kill\` ends it.`,
    )
    .action((name: string, options: Options) =>
      run(async ({ client }) => {
        const { id } = await client.findBox(name)
        const path = `/boxes/${id}/commands`
        if (options.delete !== undefined) await remove(client, name, path, options.delete, options)
        else if (options.deleteAll) await removeAll(client, name, path, options)
        else await show(client, name, path, options)
        return undefined
      }),
    )
}

const deletes = (option: Option): Option =>
  option.conflicts([
    'mode',
    'status',
    'limit',
    'before',
    'all',
    option.long === '--delete' ? 'deleteAll' : 'delete',
  ])

async function show(client: Client, name: string, path: string, options: Options): Promise<void> {
  const found = await (options.all ? every(client, path, options) : page(client, path, options))
  const { commands, nextBefore } = found
  if (options.json) return printJson(found)
  if (commands.length > 0) print(listing(commands, Date.now()))
  else say(`No ${options.mode || options.status ? 'such ' : ''}command of ${name} is recorded.`)
  if (nextBefore !== null)
    say(`There are more: box history ${name}${filterWords(options)} --before ${nextBefore}`)
}

const page = (
  client: Client,
  path: string,
  { mode, status, limit, before }: Filters,
): Promise<CommandList> => {
  const query = new URLSearchParams({
    ...(mode !== undefined && { mode }),
    ...(status !== undefined && { status }),
    ...(limit !== undefined && { limit: String(limit) }),
    ...(before !== undefined && { before }),
  })
  return client.control<CommandList>('GET', query.size > 0 ? `${path}?${query}` : path)
}

async function every(client: Client, path: string, filters: Filters): Promise<CommandList> {
  const commands: CommandRecord[] = []
  for (let next: { before?: string } = {}; ; ) {
    const found = await page(client, path, { ...filters, ...next, limit: LONGEST_PAGE })
    commands.push(...found.commands)
    if (found.nextBefore === null) return { commands, nextBefore: null }
    next = { before: found.nextBefore }
  }
}

const filterWords = ({ mode, status, limit }: Filters): string =>
  Object.entries({ mode, status, limit })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` --${key} ${value}`)
    .join('')

const HEAD = ['ID', 'STARTED', 'MODE', 'SOURCE', 'BY', 'STATUS', 'TOOK', 'COMMAND']

const listing = (commands: readonly CommandRecord[], now: number): string =>
  table(
    [
      HEAD,
      ...commands.map((command) => [
        command.id,
        `${age(command.startedAt, now)} ago`,
        command.mode,
        command.source,
        actorOf(command),
        endWords(command.status, command),
        tookOf(command),
        command.command === null ? '(not kept)' : `${command.command}${command.commandTruncated ? '…' : ''}`,
      ]),
    ],
    terminalWidth(),
  )

/** Enough of the id to tell people apart; --json has the whole. */
const actorOf = ({ actor: { kind, userId } }: CommandRecord): string => userId?.slice(0, 12) ?? kind

const tookOf = ({ startedAt, finishedAt }: CommandRecord): string =>
  finishedAt === null ? '-' : duration(Date.parse(finishedAt) - Date.parse(startedAt))

async function remove(
  client: Client,
  name: string,
  path: string,
  id: string,
  { json }: JsonOption,
): Promise<void> {
  const deleted = client.control<undefined>('DELETE', `${path}/${encodeURIComponent(id)}`)
  await orNone(deleted, noRecord(name, id))
  if (json) printJson(null)
  else say(`${name}: record ${id} deleted`)
}

async function removeAll(client: Client, name: string, path: string, { json }: JsonOption): Promise<void> {
  const answer = await client.control<{ deleted: number }>('DELETE', path)
  if (json) printJson(answer)
  else say(`${name}: ${answer.deleted} records deleted`)
}
