// box history: lists the commands that ran on a box, or deletes their records.
import { type Command, Option } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { COMMAND_MODES, COMMAND_STATUSES } from '../../shared/field-values.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createIntegerParser, type JsonOption } from '../arguments/options.ts'
import { parseTime } from '../arguments/parse-time.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import { addHints } from '../connection/refusals.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { findRecordId } from '../history/find-record.ts'
import { loadRecords, loadRecordsOfBoxes, type RecordQuery } from '../history/load-records.ts'
import { createActorText, createFilters, createRecordList } from '../history/record-list.ts'
import { createMatcher, type FilterValues } from '../lists/filters.ts'
import type { Loaded } from '../lists/list.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { loadMemberNames } from '../members/member-names.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr } from '../output/print.ts'
import { noSuchRecordMessage, replaceNotFoundMessage } from '../processes/process-messages.ts'
import { getPath } from '../processes/read-records.ts'

type Page = { limit?: number; before?: string; all?: boolean; since?: string }
type Options = ListOptions & Page & { mode?: string; status?: string; delete?: string; deleteAll?: boolean }

export function addHistoryCommand(program: Command, runAction: RunAction): void {
  const listing = program
    .command('history')
    .summary('list the commands that ran on a box')
    .description(
      'Lists the commands that ran on a box, newest first, with the user and the exit status. Works while the box is ' +
        'suspended. `box history --all` lists the newest commands of all boxes.',
    )
    .argument('[name]', "the box's name or id; also of a deleted box")
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
    .option('--since <time>', 'all commands since this time: 2h, 03:14, 2026-01-31T09:30')
    .option('--all', 'show all commands of the box; without a name, the newest ones of all boxes')
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
  box history --all --since 1h
  box history fig --all --json | jq '.commands[] | select(.exitCode != 0)'
  box output fig $ID    prints the output of a command
  box history fig --delete $ID

--filter user= and command= match a part of the text; with * or ? they match the whole text.
Deleting a record does not terminate the command: use \`box kill\`. For records of a deleted box, type the id of the box.`,
    )
    .action((name: string | undefined, options: Options) =>
      runAction(async (session) => {
        const { client } = session
        assertCompatible(name, options)
        if (name === undefined) return showAllBoxes(session, options)
        const isDeletion = options.delete !== undefined || options.deleteAll === true
        // Several deleted boxes may have the name, and a deletion cannot be undone.
        const { id } = isDeletion
          ? await addHints(client.findBox(name), { no_such_box: DELETED_BOX_HINT })
          : await findBoxWithRecords(client, name)
        if (options.delete !== undefined) await deleteRecord(client, name, id, options.delete, options)
        else if (options.deleteAll) await deleteAllRecords(client, name, id, options)
        else return showRecords(session, name, id, options)
        return undefined
      }),
    )
}

const DELETED_BOX_HINT = 'The records of a deleted box need its id, which `box ls -a -o wide` has.'

const createDeleteOption = (flags: string, description: string, otherDelete: string): Option =>
  new Option(flags, description).conflicts([
    ...['mode', 'status', 'limit', 'before', 'all', 'since', 'filter', 'output', 'quiet', 'watch'],
    otherDelete,
  ])

/** @throws CliError */
function assertCompatible(name: string | undefined, options: Options): void {
  const { all, before, limit, since, delete: deletedId, deleteAll } = options
  const fail = (message: string) => {
    throw new CliError(EXIT.usage, message)
  }
  if (name === undefined && (!all || before !== undefined || deletedId !== undefined || deleteAll))
    fail('The name of a box is missing. `box history --all` lists the newest commands of all boxes.')
  if (name !== undefined && all && (before ?? limit ?? since) !== undefined)
    fail(
      `--all cannot be used with ${before !== undefined ? '--before' : limit !== undefined ? '--limit' : '--since'}.`,
    )
}

const toRecordQuery = ({ since, ...page }: Page, filter: FilterValues): RecordQuery => ({
  ...page,
  ...(since !== undefined && { since: parseTime('--since', since, Date.now()) }),
  filter,
})

/** The boxes whose histories are read for all boxes: the number of requests stays bounded. */
const MAX_BOXES = 100

async function showAllBoxes({ client, signal }: Session, options: Options): Promise<number> {
  const account = await client.request<Account>('GET', '/me')
  const { boxes } = account
  const read = boxes.slice(0, MAX_BOXES)
  const names = new Map(boxes.map(({ id, hostname }) => [id, hostname]))
  const origin = { getBoxName: (id: string) => names.get(id) ?? id.slice(0, 8) }
  const list = createRecordList(origin, createActorText(await loadMemberNames(client, account)))
  const filter = mergeFilters(options)
  const { since, limit } = toRecordQuery(options, filter)
  const query = { filter, ...(since !== undefined && { since }), ...(limit !== undefined && { limit }) }
  let hasMore = false
  const load = async (): Promise<Loaded<CommandRecord>> => {
    const ids = read.map(({ id }) => id)
    const { commands, ...page } = await loadRecordsOfBoxes(
      client,
      ids,
      query,
      createMatcher(list.filters, filter),
    )
    hasMore = page.hasMore
    return { rows: commands, toJson: (shown) => ({ commands: shown, nextBefore: null }) }
  }
  const exitCode = await printList(list, load, { ...options, filter }, signal)
  if (getFormat(options) === 'json') return exitCode
  if (hasMore) printStderr('There are older commands: use a larger --limit, --since, or the name of a box.')
  if (boxes.length > MAX_BOXES)
    printStderr(
      `Only the ${MAX_BOXES} newest of ${boxes.length} boxes were read. For another one, use its name.`,
    )
  return exitCode
}

async function showRecords(
  { client, signal }: Session,
  name: string,
  boxId: string,
  options: Options,
): Promise<number> {
  const list = createRecordList(name, createActorText(await loadMemberNames(client)))
  const filter = mergeFilters(options)
  const query = toRecordQuery(options, filter)
  const matches = createMatcher(list.filters, filter)
  let hint: string | null = null
  const load = async (): Promise<Loaded<CommandRecord>> => {
    const { hasMore, ...page } = await loadRecords(client, boxId, query, matches)
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
