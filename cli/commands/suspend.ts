// box suspend: stops a box.
import type { Command } from 'commander'
import { changeState } from '../change-state.ts'
import { createJsonOption, createNoWaitOption, type JsonOption, type WaitOption } from '../options.ts'
import type { RunAction } from '../session.ts'

export function addSuspendCommand(program: Command, runAction: RunAction): void {
  program
    .command('suspend')
    .summary('stop a box (keeps files, terminates processes)')
    .description(
      'Stops a box and waits until it is suspended. Files are kept, processes are terminated. `box wake` or the next ' +
        '`box exec` starts the box again.',
    )
    .argument('<name>', "the box's name or id")
    .addOption(createNoWaitOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Example:
  box suspend fig && box ls`,
    )
    .action((name: string, options: JsonOption & WaitOption) =>
      runAction((session) => changeState(session, name, 'suspend', options)),
    )
}
