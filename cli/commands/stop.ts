// box stop: stops boxes. The processes are terminated.
import type { Command } from 'commander'
import { addChangeOptions, type ChangeOptions, changeStates } from '../boxes/change-state.ts'
import type { RunAction } from '../connection/session.ts'

export function addStopCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('stop')
    .summary('stop boxes (keeps files, terminates processes)')
    .description(
      'Stops boxes and waits until they are suspended. Files are kept, processes are terminated. A frozen box is stopped too. ' +
        '`box start` or the next `box exec` starts a box again.',
    )
  addChangeOptions(command, 'stop', 'running and frozen boxes')
    .addHelpText(
      'after',
      `
Examples:
  box stop fig
  box stop fig plum
  box stop --all
  box stop --label team=web

\`box suspend\` keeps the processes where the machine can freeze them. With several boxes, each one is tried; the exit code is
that of the first failure.`,
    )
    .action((names: string[], options: ChangeOptions) =>
      runAction((session) => changeStates(session, names, 'stop', options)),
    )
}
