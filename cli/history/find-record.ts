// Finds a record of the command history by its id or a unique prefix of its id; the newest record without an id.
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { isWholeId, printNewest, toIdPrefix } from '../processes/find-process.ts'
import { noSuchRecordMessage } from '../processes/process-messages.ts'
import { getPage, readRecords } from '../processes/read-records.ts'

/** @throws CliError when no record or several records match */
export async function findRecordId(
  client: Client,
  { boxId, boxName, typed }: { boxId: string; boxName: string; typed: string },
): Promise<string> {
  if (isWholeId(typed)) return typed
  const prefix = toIdPrefix(typed)
  const matches: CommandRecord[] = []
  for await (const record of readRecords(client, boxId, {}))
    if (record.id.startsWith(prefix)) matches.push(record)
  const found = findByPrefix(matches, prefix, {
    getId: ({ id }) => id,
    describe: ({ command }) => command ?? '',
    kind: `records of ${boxName}`,
  })
  if (found !== undefined) return found.id
  throw new CliError(EXIT.notFound, noSuchRecordMessage(boxName, typed), { code: 'not_found' })
}

/** @throws CliError when the history is empty */
export async function getNewestRecordId(client: Client, boxId: string, boxName: string): Promise<string> {
  const { commands } = await getPage(client, boxId, { limit: 1 })
  const [newest] = commands
  if (newest === undefined)
    throw new CliError(EXIT.notFound, `No commands recorded on ${boxName}.`, { code: 'not_found' })
  printNewest('command', newest.id, newest.command)
  return newest.id
}
