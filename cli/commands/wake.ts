// box wake: starts suspended boxes.
import type { Command } from 'commander'
import { addChangeOptions, type ChangeOptions, changeStates } from '../boxes/change-state.ts'
import type { RunAction } from '../connection/session.ts'

export function addWakeCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('wake')
    .alias('start')
    .summary('start suspended boxes')
    .description(
      'Starts suspended boxes and waits until they are running. `box exec` does this automatically.',
    )
  addChangeOptions(command, 'start', 'suspended boxes')
    .addHelpText(
      'after',
      `
Examples:
  box wake fig && box cp notes.md fig:
  box start fig plum
  box start --all
  box start --label team=web

With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: ChangeOptions) =>
      runAction((session) => changeStates(session, names, 'wake', options)),
    )
}
