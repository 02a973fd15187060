// box suspend: stops boxes.
import type { Command } from 'commander'
import { addChangeOptions, type ChangeOptions, changeStates } from '../change-state.ts'
import type { RunAction } from '../session.ts'

export function addSuspendCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('suspend')
    .alias('stop')
    .summary('stop boxes (keeps files, terminates processes)')
    .description(
      'Stops boxes and waits until they are suspended. Files are kept, processes are terminated. `box wake` or the next ' +
        '`box exec` starts a box again.',
    )
  addChangeOptions(command, 'suspend all running boxes')
    .addHelpText(
      'after',
      `
Examples:
  box suspend fig
  box stop fig plum
  box stop --all

With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: ChangeOptions) =>
      runAction((session) => changeStates(session, names, 'suspend', options)),
    )
}
