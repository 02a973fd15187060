// box me: shows the user, the workspace and the API key in use.
import type { Command } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import { isLive } from '../find-box.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { formatTable, print, printJson } from '../output.ts'
import type { RunAction } from '../session.ts'

export function addMeCommand(program: Command, runAction: RunAction): void {
  program
    .command('me')
    .alias('whoami')
    .summary('show the user, the workspace and the API key in use')
    .description(
      'Shows the user, the workspace, the id of the API key, the number of boxes, and the URL of the edge: the base URL ' +
        'of requests that are forwarded to boxes. --json prints all fields of the account; of each box that is not ' +
        'deleted, its id, hostname and state. box ls --json prints all fields of the boxes.',
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
      runAction(async ({ client }) => {
        const account = await client.request<Account>('GET', '/me')
        if (options.json) printJson(shorten(account))
        else print(formatAccount(account))
        return undefined
      }),
    )
}

/** GET /me has every box in full, also those that were deleted (spec §2.3). The deprecated `box` is one of them. */
function shorten({ boxes, box: _, ...account }: Account) {
  const summaries = boxes
    .filter(isLive)
    .map(({ id, hostname, observedState }) => ({ id, hostname, observedState }))
  return { ...account, boxes: summaries }
}

function formatAccount({ user, workspace, key, edge, boxes }: Account): string {
  return formatTable([
    ['user', user ? `${user.name} (${user.role})` : 'none'],
    ['workspace', `${workspace.name} (${workspace.id})`],
    ['key', `${key.id}, ${key.expiresAt === null ? 'never expires' : `expires ${key.expiresAt}`}`],
    ['boxes', String(boxes.filter(isLive).length)],
    ['edge', edge.url],
  ])
}
