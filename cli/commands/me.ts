// box me: who is signed in, and where.
import type { Command } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { print, printJson, table } from '../output.ts'
import type { Run } from '../session.ts'

export function addMe(program: Command, run: Run): void {
  program
    .command('me')
    .alias('whoami')
    .summary('show who is signed in')
    .description('Shows whose API key is used, in which workspace, and where the edge is.')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box me
  EDGE=$(box me --json | jq -r .edge.url)`,
    )
    .action((options: JsonOption) =>
      run(async ({ client }) => {
        const account = await client.control<Account>('GET', '/me')
        if (options.json) printJson(account)
        else print(describe(account))
        return undefined
      }),
    )
}

function describe({ user, workspace, key, edge, boxes }: Account): string {
  const live = boxes.filter((box) => box.observedState !== 'terminated').length
  return table([
    ['user', user ? `${user.name} (${user.role})` : 'none'],
    ['workspace', `${workspace.name} (${workspace.id})`],
    ['key', `${key.id}, ${key.expiresAt === null ? 'never expires' : `expires ${key.expiresAt}`}`],
    ['boxes', String(live)],
    ['edge', edge.url],
  ])
}
