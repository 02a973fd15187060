// box shares: lists the links to shared ports.
import type { Command } from 'commander'
import type { PortShare } from '../../shared/api/port-shares.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { loadBoxShares, loadShares } from '../shares/requests.ts'
import { SHARES } from '../shares/share-list.ts'

export function addSharesCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('shares')
      .summary('list the links to shared ports')
      .description('Lists the links to shared ports, oldest first, of one box or of all boxes.')
      .argument('[name]', 'only the links of this box'),
    'the ids',
    SHARES.filters,
  )
    .addHelpText(
      'after',
      `
Examples:
  box shares
  box shares fig -o wide
  box shares --filter access=anyone --filter access=public
  box shares --json | jq -r '.shares[] | "\\(.hostname) \\(.port) \\(.openCount)"'

The URL of a link for anyone is shown without its secret. OPENED counts the pages that browsers have opened, and requests
of other programs. --filter box=TEXT and port=TEXT match a part of the text; with * or ? they match the whole text.`,
    )
    .action((name: string | undefined, options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const box = name === undefined ? null : await client.findBox(name)
        const load = async () => {
          const response = await (box === null ? loadShares(client) : loadBoxShares(client, box.id))
          const { members } = response.modes
          return {
            rows: response.shares,
            toJson: (shares: readonly PortShare[]) => ({ ...response, shares }),
            note: response.enabled || members.allowed ? null : members.message,
          }
        }
        return printList(SHARES, load, options, signal)
      }),
    )
}
