// box me: shows the user, the workspace and the credentials in use.
import type { Command } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import { isLive } from '../connection/find-box.ts'
import { type CoordinatorConfig, getRootUrl } from '../connection/find-coordinator.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson } from '../output/print.ts'
import { formatTable } from '../output/table.ts'

export function addMeCommand(program: Command, runAction: RunAction): void {
  program
    .command('me')
    .alias('whoami')
    .summary('show the user, the workspace and the credentials in use')
    .description(
      'Shows the user with the role, the workspace, the coordinator, the API key and the session with their expiry and where they ' +
        'came from, the number of boxes, and the URL of the edge: the base URL of requests that are forwarded to boxes. --json ' +
        'prints all fields of the account; of each box that is not deleted, its id, hostname and state. box ls --json prints all ' +
        'fields of the boxes.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box me
  EDGE=$(box me --json | jq -r .edge.url)`,
    )
    .action((options: JsonOption) =>
      runAction(async ({ client, coordinator }) => {
        const account = await client.request<Account>('GET', '/me')
        const access = await readClientAccess(client, coordinator)
        if (options.json) printJson({ ...shorten(account), client: access })
        else print(formatAccount(account, access))
        return undefined
      }),
    )
}

/** What box uses. Fields without a value are null. */
type ClientAccess = {
  url: string
  urlSource: string
  profile: string | null
  keySource: string | null
  session: { expiresAt: string } | { error: string } | null
}

async function readClientAccess(
  client: Client,
  { baseUrl, urlSource, profile, key, keySource }: CoordinatorConfig,
): Promise<ClientAccess> {
  return {
    url: getRootUrl(baseUrl),
    urlSource,
    profile: profile?.name ?? null,
    keySource: key === null ? null : keySource,
    session: profile?.session === undefined ? null : await readSession(client),
  }
}

async function readSession(client: Client): Promise<ClientAccess['session']> {
  try {
    const { session } = await client.requestBySession<CurrentSession>('GET', '/session')
    return { expiresAt: session.expiresAt }
  } catch (error) {
    if (error instanceof CliError && error.exitCode === EXIT.notAuthenticated) return { error: error.message }
    throw error
  }
}

/** GET /me has every box in full, also those that were deleted (spec §2.3). The deprecated `box` is one of them. */
function shorten({ boxes, box: _, ...account }: Account) {
  const summaries = boxes
    .filter(isLive)
    .map(({ id, hostname, observedState }) => ({ id, hostname, observedState }))
  return { ...account, boxes: summaries }
}

const listNames = (boxes: readonly Box[]): string =>
  boxes
    .filter(isLive)
    .map(({ hostname }) => hostname)
    .join(', ')

function formatAccount({ user, workspace, key, access, edge, boxes }: Account, client: ClientAccess): string {
  const { profile, session } = client
  const keyText = key
    ? `${key.id} from ${client.keySource}, ${key.expiresAt === null ? 'never expires' : `expires ${key.expiresAt}`}`
    : 'none'
  const limits = [
    ...Object.entries(access ?? {}).map(([area, level]) => `${area} ${level}`),
    ...(key?.boxIds ? [`only ${listNames(boxes) || key.boxIds.join(', ')}`] : []),
  ]
  return formatTable([
    ['user', user ? `${user.email ?? user.name} (${user.role})` : 'none'],
    ['workspace', `${workspace.name} (${workspace.id})`],
    ['coordinator', `${client.url} from ${client.urlSource}`],
    ...(profile === null ? [] : [['profile', profile]]),
    ['key', keyText],
    ...(limits.length > 0 ? [['access', limits.join(', ')]] : []),
    ...(session === null
      ? []
      : [['session', 'error' in session ? session.error : `expires ${session.expiresAt}`]]),
    ['boxes', String(boxes.filter(isLive).length)],
    ['edge', edge.url],
  ])
}
