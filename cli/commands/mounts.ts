// box mounts: lists the secrets that are mounted on a box, and whether they work.
import type { Command } from 'commander'
import type { SecretMount } from '../../shared/api/secrets.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { describeBroker, loadMounts, MOUNTS } from '../secrets/mounts.ts'

export function addMountsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('mounts')
      .summary('list the secrets of a box, and whether they work')
      .description(
        'Lists the secrets that are mounted on a box, with their variables and hosts. A note on stderr says whether the agent of the ' +
          'box could use the way through the coordinator.',
      )
      .argument('<name>', "the box's name or id"),
    'the variables',
    MOUNTS.filters,
  )
    .addHelpText('after', '\nExamples:\n  box mounts fig\n  box mounts fig --json | jq .broker')
    .action((name: string, options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const { id, hostname } = await client.findBox(name)
        const isForPeople = ['table', 'wide'].includes(getFormat(options))
        const load = async () => {
          const list = await loadMounts(client, id)
          return {
            rows: list.mounts,
            toJson: (mounts: readonly SecretMount[]) => ({ ...list, mounts }),
            note: isForPeople ? describeBroker(list, hostname) : null,
          }
        }
        return printList(MOUNTS, load, options, signal)
      }),
    )
}
