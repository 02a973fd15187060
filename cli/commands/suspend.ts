// box suspend: stops a box.
import type { Command } from 'commander'
import { changeState } from '../change-state.ts'
import { createJsonOption, createNoWaitOption, type JsonOption, type WaitOption } from '../options.ts'
import type { RunAction } from '../session.ts'

export function addSuspend(program: Command, runAction: RunAction): void {
  program
    .command('suspend')
    .summary('stop a box (files stay, processes end)')
    .description(
      'Stops a box and waits until it is stopped: its files stay, its processes end. `box wake` or the next `box exec` ' +
        'starts it again.',
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
