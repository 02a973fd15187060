// box restart: stops boxes and starts them again.
import type { Command } from 'commander'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import { restartBoxes } from '../boxes/change-state.ts'
import type { RunAction } from '../connection/session.ts'

export function addRestartCommand(program: Command, runAction: RunAction): void {
  program
    .command('restart')
    .summary('stop boxes and start them again')
    .description(
      'Stops boxes, starts them again and waits until they are running. Files are kept, processes are terminated. A ' +
        'suspended box is started.',
    )
    .argument('<name...>', 'names or ids of boxes')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box restart fig
  box restart fig plum

With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: JsonOption & QuietOption) =>
      runAction((session) => restartBoxes(session, names, options)),
    )
}
