// The options that limit an API key.
import { type Command, Option } from 'commander'
import type { AccessLevels } from '../../shared/api/account.ts'
import type { UpdateKeyRequest } from '../../shared/api/keys.ts'
import { ACCESS_LEVELS } from '../../shared/field-values.ts'
import { allowOff, type OrOff, offToNull } from '../arguments/options.ts'
import { parseFutureTime } from '../arguments/parse-time.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

export type LimitOptions = {
  expires?: OrOff<string>
  box?: string[]
  readOnly?: boolean
  access?: AccessLevels | 'all'
}

const parseExpiry = allowOff((text) => new Date(parseFutureTime('--expires', text, Date.now())).toISOString())

export function addLimitOptions(command: Command, accessValues: string): Command {
  return command
    .option('--expires <time>', 'when the key expires: 30d, 2027-01-31, or never', parseExpiry)
    .option('--box <name>', 'limit the key to this box; can be repeated', (name, names: string[] = []) => [
      ...names,
      name,
    ])
    .addOption(
      new Option('--read-only', 'short for --access boxes=read,workspace=read,history=read').conflicts(
        'access',
      ),
    )
    .addOption(new Option('--access <levels>', accessValues).argParser(parseAccess))
}

/** More than "read" of the API, which does not include the command history. */
const READ_ONLY: AccessLevels = { boxes: 'read', workspace: 'read', history: 'read' }

const formatLevels = (area: keyof typeof ACCESS_LEVELS) => `${area}: ${ACCESS_LEVELS[area].join(', ')}`
const ALL_LEVELS = [formatLevels('boxes'), formatLevels('workspace'), formatLevels('history')].join('; ')
export const ACCESS_HELP = `limit the key to a level per area, such as boxes=run,workspace=read (${ALL_LEVELS})`

/** The coordinator checks the names of areas and levels. */
function parseAccess(text: string): AccessLevels | 'all' {
  if (text === 'all') return text
  const entries = text.split(',').map((entry) => entry.split('='))
  if (entries.some((entry) => entry.length !== 2 || entry.includes('')))
    throw new CliError(
      EXIT.usage,
      '--access must be a level per area, such as boxes=run or boxes=write,workspace=read.',
    )
  return Object.fromEntries(entries)
}

/** Finds the boxes. @throws CliError */
export async function toLimits(
  client: Client,
  { expires, box, readOnly, access }: LimitOptions,
): Promise<Pick<UpdateKeyRequest, 'expiresAt' | 'boxIds' | 'access'>> {
  const boxes = box === undefined ? undefined : await Promise.all(box.map((name) => client.findBox(name)))
  return {
    ...(expires !== undefined && { expiresAt: offToNull(expires) }),
    ...(boxes !== undefined && { boxIds: boxes.map(({ id }) => id) }),
    ...(readOnly && { access: READ_ONLY }),
    ...(access !== undefined && { access: access === 'all' ? null : access }),
  }
}
