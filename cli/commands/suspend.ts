// box suspend: suspends boxes. Their processes are frozen where the machine can freeze them.
import type { Command } from 'commander'
import { addChangeOptions, type ChangeOptions, changeStates } from '../boxes/change-state.ts'
import type { RunAction } from '../connection/session.ts'

export function addSuspendCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('suspend')
    .alias('pause')
    .summary('suspend boxes (keeps files, and processes where possible)')
    .description(
      'Suspends boxes and waits. Files are kept. Where the machine can freeze processes, they keep their memory and continue ' +
        'when the box is woken, for an hour unless the operator has set another time; then, and on other machines, they are ' +
        'terminated. `box ls` shows a frozen box. `box wake` or the next `box exec` starts a box again.',
    )
  addChangeOptions(command, 'suspend', 'running boxes')
    .addHelpText(
      'after',
      `
Examples:
  box suspend fig
  box suspend fig plum
  box suspend --all
  box suspend --label team=web

\`box stop\` terminates the processes at once. With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: ChangeOptions) =>
      runAction((session) => changeStates(session, names, 'suspend', options)),
    )
}
