// box snapshot: takes a snapshot of a box's files.
import type { Command } from 'commander'
import type { CreateSnapshotRequest, Snapshot } from '../../shared/api/snapshots.ts'
import { addOutputOptions } from '../arguments/options.ts'
import { selectName } from '../boxes/new-box.ts'
import { addHints, SNAPSHOT_LIMIT_HINTS } from '../connection/refusals.ts'
import type { RunAction } from '../connection/session.ts'
import { createSnapshotName, finishSnapshot, type NewSnapshotOptions } from '../snapshots/new-snapshot.ts'

type Options = NewSnapshotOptions & { name?: string }

export function addSnapshotCommand(program: Command, runAction: RunAction): void {
  addOutputOptions(
    program
      .command('snapshot')
      .summary('take a snapshot of the files of a box')
      .description(
        'Takes a snapshot of the files of a box, and waits until the snapshot is available. Prints the id on stdout and the ' +
          'progress on stderr. The processes of a running box are paused for a moment, so that all files are from the same time.',
      )
      .argument('<box>', 'name or id of the box')
      .argument('[name]', 'name of the snapshot (default: the name of the box and the time)')
      .option('--name <name>', 'the same as the argument')
      .option('--description <text>', 'description of the snapshot, at most 500 characters'),
  )
    .addHelpText(
      'after',
      `
Examples:
  box snapshot fig
  box snapshot fig before-upgrade --description 'before apt-get upgrade'
  SNAPSHOT=$(box snapshot fig) && box restore $SNAPSHOT plum

\`box snapshots\` lists the snapshots, \`box snapshots rm\` deletes them, \`box restore\` creates a box from one.`,
    )
    .action((boxName: string, argument: string | undefined, options: Options) =>
      runAction(async (session) => {
        const { client } = session
        const { id, hostname } = await client.findBox(boxName)
        const { description } = options
        const request: CreateSnapshotRequest = {
          boxId: id,
          name: selectName(argument, options.name) ?? createSnapshotName(hostname, new Date()),
          ...(description !== undefined && { description }),
        }
        const response = client.request<{ snapshot: Snapshot }>('POST', '/snapshots', request)
        const { snapshot } = await addHints(response, SNAPSHOT_LIMIT_HINTS)
        await finishSnapshot(session, snapshot, options, (taken) => taken.id)
        return undefined
      }),
    )
}
