// box restore: creates a box with the files of a snapshot or template.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { RestoreRequest } from '../../shared/api/snapshots.ts'
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
import { boxCommand } from '../command-name.ts'
import { addHints, TIER_TOO_SMALL_HINTS } from '../connection/refusals.ts'
import type { RunAction } from '../connection/session.ts'
import { sanitize } from '../output/print.ts'
import { findSnapshot } from '../snapshots/find-snapshot.ts'

export function addRestoreCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('restore')
    .summary('create a box from a snapshot or template')
    .description(
      'Creates a box with the files and variables of a snapshot or template, in its region, and waits until the box is ' +
        'running. The box of the snapshot does not change. Prints the name on stdout and the state changes on stderr.',
    )
    .argument('<snapshot>', 'name or id of a snapshot, or name of a template')
  addOutputOptions(
    addEnvironmentOption(
      addTierOption(addNewBoxArgument(command), 'that of the snapshot'),
      'that of the snapshot',
    ),
  )
    .addHelpText(
      'after',
      `
Examples:
  box restore fig-20260131-031415
  box restore web plum --tier pro
  box restore before fig-new && box rename fig fig-old && box rename fig-new fig

Of several snapshots with the name, the one of a box that exists wins: a deleted box may have had the same name.
\`box create --from\` does the same with further options, such as -e.`,
    )
    .action((typed: string, argument: string | undefined, options: NewBoxOptions) =>
      runAction(async (session) => {
        const { client } = session
        const name = selectName(argument, options.name)
        const { id } = await findSnapshot(client, typed)
        const response = client.request<{ box: Box }>(
          'POST',
          `/snapshots/${encodeURIComponent(id)}/restore`,
          toRequest(name, options),
        )
        const hints = {
          ...TIER_TOO_SMALL_HINTS,
          name_taken: getRenameHint(name),
        }
        await finishCreation(
          session,
          (await addHints(explainEnvironment(client, response, options), hints)).box,
          options,
        )
        return undefined
      }),
    )
}

const getRenameHint = (name: string | undefined): string | null =>
  name === undefined ? null : `\`${boxCommand()} rename ${sanitize(name)} NEWNAME\` frees the name.`

const toRequest = (name: string | undefined, { tier, ...options }: NewBoxOptions): RestoreRequest => ({
  ...toEnvironmentField(options),
  ...(name !== undefined && { name }),
  ...(tier !== undefined && { tier: tier as NonNullable<RestoreRequest['tier']> }),
})
