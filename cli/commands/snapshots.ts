// box snapshots: lists the snapshots. box snapshots rm: deletes snapshots.
import type { Command } from 'commander'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { addOutputOptions } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { type DeleteOptions, deleteSnapshots } from '../snapshots/delete-snapshots.ts'
import { loadSnapshots } from '../snapshots/find-snapshot.ts'
import { FILTERS, SNAPSHOTS } from '../snapshots/snapshot-list.ts'

type Options = ListOptions & { all?: boolean }

export function addSnapshotsCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('snapshots')
    .summary('list or delete snapshots')
    .description('Lists the snapshots, newest first. SIZE is the disk space that the files need in a box.')
    .argument('[box]', 'only the snapshots of this box; also of a deleted one, by its name')
    .option('-a, --all', 'include the copies that forks make for themselves')
    // An option after `rm` belongs to `rm`.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(command, 'the ids', FILTERS)
    .addHelpText(
      'after',
      `
Examples:
  box snapshots
  box snapshots fig -o wide
  box snapshots --filter kind=auto --filter status=available
  box snapshots --json | jq '.snapshots[] | {name, sizeGb}'
  box snapshots rm fig-20260131-031415

KIND is manual, template, fork, auto (box set --auto-snapshot) or final (taken when the box was deleted). --filter name=TEXT,
box=TEXT and template=TEXT match a part of the text; with * or ? they match the whole text.`,
    )
    .action((boxName: string | undefined, options: Options) =>
      runAction(({ client, signal }) => {
        const load = async () => {
          const response = await loadSnapshots(client, options.all ? '?transient=1' : '')
          const rows = await selectBoxSnapshots(client, response.snapshots, boxName)
          return { rows, toJson: (snapshots: readonly Snapshot[]) => ({ ...response, snapshots }) }
        }
        return printList(SNAPSHOTS, load, options, signal)
      }),
    )
  addRemoveCommand(command, runAction)
}

/** @throws CliError when there is no such box */
async function selectBoxSnapshots(
  client: Client,
  snapshots: Snapshot[],
  boxName: string | undefined,
): Promise<Snapshot[]> {
  if (boxName === undefined) return snapshots
  const rows = snapshots.filter(
    ({ boxId, sourceBoxHostname }) => boxId === boxName || sourceBoxHostname === boxName,
  )
  if (rows.length > 0) return rows
  const { id } = await client.findBox(boxName)
  return snapshots.filter(({ boxId }) => boxId === id)
}

function addRemoveCommand(snapshots: Command, runAction: RunAction): void {
  addOutputOptions(
    snapshots
      .command('rm')
      .aliases(['delete', 'remove'])
      .summary('delete snapshots')
      .description(
        'Deletes snapshots, and waits until the deletion is complete. Boxes that were created from them are not affected. On a ' +
          'terminal, asks for confirmation.',
      )
      .argument('<snapshot...>', 'names or ids of snapshots')
      .option('-y, --yes', 'do not ask for confirmation')
      .option('-f, --force', 'do not ask for confirmation, and ignore snapshots that do not exist'),
  )
    .addHelpText(
      'after',
      `
Examples:
  box snapshots rm fig-20260131-031415
  box snapshots -q --filter box=fig | xargs -r box snapshots rm

With several snapshots, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: DeleteOptions) =>
      runAction((session) => deleteSnapshots(session, names, options)),
    )
}
