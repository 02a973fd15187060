// Finds a process by its id or a unique prefix of its id; the newest process without an id.
import type { ExecList, ProcessFields } from '../../shared/api/processes.ts'
import { COMMAND_ID_PATTERN } from '../../shared/field-values.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import { boxCommand } from '../command-name.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printMessage, sanitize } from '../output/print.ts'
import { noSuchProcessMessage } from './process-messages.ts'

/** Accepts the ids of processes and of records. */
export const isWholeId = (text: string): boolean => COMMAND_ID_PATTERN.test(text)

/** Adds `p_`, which the user may omit. */
export const toIdPrefix = (typed: string): string => (typed.startsWith('p_') ? typed : `p_${typed}`)

/** @throws CliError when no process or several processes match */
export function findProcess(
  processes: readonly ProcessFields[],
  boxName: string,
  typed: string,
): ProcessFields {
  const found = findByPrefix(processes, toIdPrefix(typed), {
    getId: ({ processId }) => processId,
    describe: ({ command }) => command,
    kind: `processes of ${boxName}`,
  })
  if (found !== undefined) return found
  throw new CliError(EXIT.notFound, noSuchProcessMessage(boxName, typed), { code: 'not_found' })
}

/** Requests the list once, for the first id that is not complete. */
export function createIdFinder(edge: EdgeClient): (typed: string) => Promise<string> {
  let list: Promise<ExecList> | undefined
  return async (typed) => {
    if (isWholeId(typed)) return typed
    list ??= edge.requestJson<ExecList>('GET', '/exec')
    return findProcess((await list).processes, edge.boxName, typed).processId
  }
}

/** @throws CliError when there is no process */
export function getNewestProcess(processes: readonly ProcessFields[], boxName: string): ProcessFields {
  const [newest] = processes
  if (newest !== undefined) return newest
  const message = `No processes on ${boxName}. Start one with \`${boxCommand()} exec -d ${boxName} -- COMMAND\`.`
  throw new CliError(EXIT.notFound, message, { code: 'not_found' })
}

/** A person did not type the id; a script gets no message. @param kind such as "process" */
export function printNewest(kind: string, id: string, command: string | null): void {
  if (process.stderr.isTTY)
    printMessage(`newest ${kind} ${sanitize(id)}: ${sanitize(command ?? '(not stored)')}`)
}
