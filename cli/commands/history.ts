// box history: lists the commands that ran on a box, or deletes their records.
import { type Command, Option } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { COMMAND_MODES, COMMAND_STATUSES } from '../../shared/field-values.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createIntegerParser, type JsonOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { findRecordId } from '../history/find-record.ts'
import { loadRecords } from '../history/load-records.ts'
import { getPath } from '../history/read-records.ts'
import { createFilters, createRecordList } from '../history/record-list.ts'
import { createUserNames } from '../history/user-names.ts'
import { createMatcher, type FilterValues } from '../lists/filters.ts'
import type { Loaded } from '../lists/list.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { printJson, printStderr } from '../output/print.ts'
import { noSuchRecordMessage, replaceNotFoundMessage } from '../processes/process-messages.ts'

type Page = { limit?: number; before?: string; all?: boolean }
type Options = ListOptions & Page & { mode?: string; status?: string; delete?: string; deleteAll?: boolean }

export function addHistoryCommand(program: Command, runAction: RunAction): void {
  const listing = program
    .command('history')
    .summary('list the commands that ran on a box')
    .description(
      'Lists the commands that ran on a box, newest first, with the user and the exit status. Works while the box is ' +
        'suspended.',
    )
    .argument('<name>', "the box's name or id")
  addListOptions(
    listing,
    'the ids',
    createFilters(() => ''),
  )
    .addOption(new Option('--mode <mode>', 'short for --filter mode=<mode>').choices(COMMAND_MODES))
    .addOption(
      new Option('--status <status>', 'short for --filter status=<status>').choices(COMMAND_STATUSES),
    )
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
    .addHelpText(
      'after',
      `
Examples:
  box history fig
  box history fig --filter status=running --filter command=make --limit 10
  box history fig --all --json | jq '.commands[] | select(.exitCode != 0)'
  box output fig $ID    prints the output of a command
  box history fig --delete $ID

--filter user= and command= match a part of the text; with * or ? they match the whole text.
Deleting a record does not terminate the command: use \`box kill\`.`,
    )
    .action((name: string, options: Options) =>
      runAction(async (session) => {
        const { client } = session
        const { id } = await client.findBox(name)
        if (options.delete !== undefined) await deleteRecord(client, name, id, options.delete, options)
        else if (options.deleteAll) await deleteAllRecords(client, name, id, options)
        else return showRecords(session, name, id, options)
        return undefined
      }),
    )
}

const createDeleteOption = (flags: string, description: string, otherDelete: string): Option =>
  new Option(flags, description).conflicts([
    ...['mode', 'status', 'limit', 'before', 'all', 'filter', 'output', 'quiet', 'watch'],
    otherDelete,
  ])

async function showRecords(
  { client, signal }: Session,
  name: string,
  boxId: string,
  options: Options,
): Promise<number> {
  const names = createUserNames(await client.request<Account>('GET', '/me'))
  const list = createRecordList(name, names)
  const filter = mergeFilters(options)
  const matchesFilters = createMatcher(list.filters, filter)
  const matches = (record: CommandRecord) => {
    names.learn([record])
    return matchesFilters(record)
  }
  let hint: string | null = null
  const load = async (): Promise<Loaded<CommandRecord>> => {
    const { hasMore, ...page } = await loadRecords(client, boxId, { ...options, filter }, matches)
    names.learn(page.commands)
    hint = null
    if (page.nextBefore !== null)
      hint = `Older commands: ${boxCommand()} history ${name}${formatFilters(options)} --before ${page.nextBefore}`
    if (hasMore) hint = 'More commands match: use --all or a larger --limit.'
    return { rows: page.commands, toJson: (commands) => ({ ...page, commands }) }
  }
  const exitCode = await printList(list, load, { ...options, filter }, signal)
  if (hint !== null && getFormat(options) !== 'json') printStderr(hint)
  return exitCode
}

/** --mode and --status are filters. */
function mergeFilters({ filter = new Map(), mode, status }: Options): FilterValues {
  const merged: FilterValues = new Map(filter)
  for (const [key, value] of Object.entries({ mode, status }))
    if (value !== undefined) merged.set(key, [...(merged.get(key) ?? []), value])
  return merged
}

function formatFilters({ filter = new Map(), mode, status, limit }: Options): string {
  const filters = [...filter].flatMap(([key, values]) =>
    values.map((value: string) => ` --filter ${key}=${value}`),
  )
  const others = Object.entries({ mode, status, limit })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` --${key} ${value}`)
  return [...filters, ...others].join('')
}

async function deleteRecord(
  client: Client,
  name: string,
  boxId: string,
  typed: string,
  { json }: JsonOption,
): Promise<void> {
  const id = await findRecordId(client, { boxId, boxName: name, typed })
  const response = client.request<undefined>('DELETE', `${getPath(boxId)}/${encodeURIComponent(id)}`)
  await replaceNotFoundMessage(response, noSuchRecordMessage(name, id))
  if (json) printJson(null)
  else printStderr(`${name}: record ${id} deleted`)
}

async function deleteAllRecords(
  client: Client,
  name: string,
  boxId: string,
  { json }: JsonOption,
): Promise<void> {
  const response = await client.request<{ deleted: number }>('DELETE', getPath(boxId))
  if (json) printJson(response)
  else printStderr(`${name}: ${response.deleted} records deleted`)
}
