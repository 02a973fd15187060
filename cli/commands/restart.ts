// box restart: stops boxes and starts them again.
import type { Command } from 'commander'
import { createJsonOption, createQuietOption } from '../arguments/options.ts'
import { type RestartOptions, restartBoxes } from '../boxes/change-state.ts'
import { addSelectionOptions } from '../boxes/select-boxes.ts'
import type { RunAction } from '../connection/session.ts'

export function addRestartCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('restart')
    .summary('stop boxes and start them again')
    .description(
      'Stops boxes, starts them again and waits until they are running. Files are kept, processes are terminated. A ' +
        'suspended box is started.',
    )
    .argument('[name...]', 'names or ids of boxes')
  addSelectionOptions(command, 'restart', 'running boxes')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box restart fig
  box restart fig plum
  box restart --label team=web

With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: RestartOptions) =>
      runAction((session) => restartBoxes(session, names, options)),
    )
}
