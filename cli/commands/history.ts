// box history: lists the commands that ran on a box, or deletes their records.
import { type Command, Option } from 'commander'
import type { CommandList, Command as CommandRecord } from '../../shared/api/commands.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Client } from '../client.ts'
import { createIntegerParser, createJsonOption, type JsonOption } from '../options.ts'
import {
  formatAge,
  formatDuration,
  formatTable,
  getTerminalWidth,
  print,
  printJson,
  printStderr,
} from '../output.ts'
import { formatExit, noSuchRecordMessage, replaceNotFoundMessage } from '../process-messages.ts'
import type { RunAction } from '../session.ts'

type Filters = { mode?: string; status?: string; limit?: number; before?: string; all?: boolean }
type Options = JsonOption & Filters & { delete?: string; deleteAll?: boolean }

/** Copied from COMMAND_STATUSES of shared/api/commands.ts: importing it loads zod. */
const STATUSES = 'running, exited, killed, timed_out, failed, lost'

export function addHistoryCommand(program: Command, runAction: RunAction): void {
  program
    .command('history')
    .summary('list the commands that ran on a box')
    .description(
      'Lists the commands that ran on a box, newest first, with the user and the exit status. Works while the box is ' +
        'suspended.',
    )
    .argument('<name>', "the box's name or id")
    .option('--mode <mode>', 'show only sync or detached commands')
    .option('--status <status>', `show only commands with this status: ${STATUSES}`)
    .option(
      '--limit <count>',
      'show at most this many commands, 1 to 200 (default: 50)',
      createIntegerParser('--limit', LIMITS.commandPage),
    )
    .option(
      '--before <cursor>',
      'show older commands; the cursor is printed on stderr, and is nextBefore with --json',
    )
    .addOption(new Option('--all', 'show all commands').conflicts(['before', 'limit']))
    .addOption(
      createDeleteOption(
        '--delete <id>',
        'delete this record and its output, without confirmation',
        'deleteAll',
      ),
    )
    .addOption(createDeleteOption('--delete-all', 'delete all records, without confirmation', 'delete'))
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box history fig
  box history fig --status failed --limit 10
  box history fig --all --json | jq -r '.commands[] | select(.exitCode != 0) | .command'
  box output fig $ID                         prints the output of a command
  box history fig --delete $ID

Deleting a record does not stop the command; use \`box kill\` for that.`,
    )
    .action((name: string, options: Options) =>
      runAction(async ({ client }) => {
        const { id } = await client.findBox(name)
        const path = `/boxes/${id}/commands`
        if (options.delete !== undefined) await deleteRecord(client, name, path, options.delete, options)
        else if (options.deleteAll) await deleteAllRecords(client, name, path, options)
        else await showRecords(client, name, path, options)
        return undefined
      }),
    )
}

const createDeleteOption = (flags: string, description: string, otherDelete: string): Option =>
  new Option(flags, description).conflicts(['mode', 'status', 'limit', 'before', 'all', otherDelete])

async function showRecords(client: Client, name: string, path: string, options: Options): Promise<void> {
  const list = await (options.all ? getAllPages(client, path, options) : getPage(client, path, options))
  const { commands, nextBefore } = list
  if (options.json) return printJson(list)
  if (commands.length > 0) print(formatRecords(commands, Date.now()))
  else printStderr(`No ${options.mode || options.status ? 'matching ' : ''}commands recorded on ${name}.`)
  if (nextBefore !== null)
    printStderr(`Older commands: box history ${name}${formatFilters(options)} --before ${nextBefore}`)
}

const getPage = (
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
  return client.request<CommandList>('GET', query.size > 0 ? `${path}?${query}` : path)
}

async function getAllPages(client: Client, path: string, filters: Filters): Promise<CommandList> {
  const commands: CommandRecord[] = []
  for (let cursor: { before?: string } = {}; ; ) {
    const page = await getPage(client, path, { ...filters, ...cursor, limit: LIMITS.commandPage.max })
    commands.push(...page.commands)
    if (page.nextBefore === null) return { commands, nextBefore: null }
    cursor = { before: page.nextBefore }
  }
}

const formatFilters = ({ mode, status, limit }: Filters): string =>
  Object.entries({ mode, status, limit })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` --${key} ${value}`)
    .join('')

const TABLE_HEADER = ['ID', 'STARTED', 'MODE', 'SOURCE', 'BY', 'STATUS', 'TOOK', 'COMMAND']

const formatRecords = (commands: readonly CommandRecord[], now: number): string =>
  formatTable(
    [
      TABLE_HEADER,
      ...commands.map((record) => [
        record.id,
        `${formatAge(record.startedAt, now)} ago`,
        record.mode,
        record.source,
        formatActor(record),
        formatExit(record.status, record),
        formatElapsed(record),
        record.command === null ? '(not stored)' : `${record.command}${record.commandTruncated ? '…' : ''}`,
      ]),
    ],
    getTerminalWidth(),
  )

/** The start of the user id, which is enough to distinguish users; --json prints all of it. */
const formatActor = ({ actor: { kind, userId } }: CommandRecord): string => userId?.slice(0, 12) ?? kind

const formatElapsed = ({ startedAt, finishedAt }: CommandRecord): string =>
  finishedAt === null ? '-' : formatDuration(Date.parse(finishedAt) - Date.parse(startedAt))

async function deleteRecord(
  client: Client,
  name: string,
  path: string,
  id: string,
  { json }: JsonOption,
): Promise<void> {
  const response = client.request<undefined>('DELETE', `${path}/${encodeURIComponent(id)}`)
  await replaceNotFoundMessage(response, noSuchRecordMessage(name, id))
  if (json) printJson(null)
  else printStderr(`${name}: record ${id} deleted`)
}

async function deleteAllRecords(
  client: Client,
  name: string,
  path: string,
  { json }: JsonOption,
): Promise<void> {
  const response = await client.request<{ deleted: number }>('DELETE', path)
  if (json) printJson(response)
  else printStderr(`${name}: ${response.deleted} records deleted`)
}
