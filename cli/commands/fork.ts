// box fork: creates a box with a copy of another box's files.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { ForkRequest, Snapshot } from '../../shared/api/snapshots.ts'
import { addOutputOptions } from '../arguments/options.ts'
import {
  addEnvironmentOption,
  addNewBoxArgument,
  addTierOption,
  explainEnvironment,
  finishCreation,
  type NewBoxOptions,
  selectName,
  toEnvironmentField,
} from '../boxes/new-box.ts'
import { addHints, TIER_TOO_SMALL_HINTS } from '../connection/refusals.ts'
import type { RunAction } from '../connection/session.ts'
import { printMessage } from '../output/print.ts'
import { getProgress } from '../output/status-line.ts'

type Options = NewBoxOptions & { keepSnapshot?: boolean }

export function addForkCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('fork')
    .summary('create a box with a copy of the files of another box')
    .description(
      'Creates a box with a copy of the files and variables of another box, and waits until the new box is running. The ' +
        'processes are not copied. Prints the name on stdout and the state changes on stderr.',
    )
    .argument('<source>', 'name or id of the box to copy')
  addOutputOptions(
    addEnvironmentOption(
      addTierOption(addNewBoxArgument(command), 'that of the box'),
      'that of the box',
    ).option(
      '--keep-snapshot',
      'keep the snapshot that the fork takes; otherwise it is deleted when the new box has its files',
    ),
  )
    .addHelpText(
      'after',
      `
Examples:
  box fork fig
  box fork fig plum --tier pro
  COPY=$(box fork fig) && box exec $COPY -- make test

A running box is copied while it runs: its processes are paused for a moment, so that all files are from the same time.`,
    )
    .action((source: string, argument: string | undefined, options: Options) =>
      runAction(async (session) => {
        const { client } = session
        const { id } = await client.findBox(source)
        const response = client.request<{ box: Box; snapshot: Snapshot }>(
          'POST',
          `/boxes/${id}/fork`,
          toRequest(selectName(argument, options.name), options),
        )
        const { box: createdBox, snapshot } = await addHints(
          explainEnvironment(client, response, options),
          TIER_TOO_SMALL_HINTS,
        )
        await finishCreation(session, createdBox, options, (box) => ({ box, snapshot }))
        if (options.keepSnapshot && getProgress(options) !== 'none')
          printMessage(`the snapshot is ${snapshot.name} (${snapshot.id}).`)
        return undefined
      }),
    )
}

/** Does not validate the name and the tier: a newer coordinator may accept other values. */
const toRequest = (name: string | undefined, { tier, keepSnapshot, ...options }: Options): ForkRequest => ({
  ...(name !== undefined && { name }),
  ...(tier !== undefined && { tier: tier as NonNullable<ForkRequest['tier']> }),
  ...(keepSnapshot && { keepSnapshot }),
  ...toEnvironmentField(options),
})
