// box wake: starts a suspended box.
import type { Command } from 'commander'
import { changeState } from '../change-state.ts'
import { createJsonOption, createNoWaitOption, type JsonOption, type WaitOption } from '../options.ts'
import type { RunAction } from '../session.ts'

export function addWakeCommand(program: Command, runAction: RunAction): void {
  program
    .command('wake')
    .summary('start a suspended box')
    .description(
      'Starts a suspended box and waits until the box is running. `box exec` does this automatically.',
    )
    .argument('<name>', "the box's name or id")
    .addOption(createNoWaitOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Example:
  box wake fig && box cp notes.md fig:`,
    )
    .action((name: string, options: JsonOption & WaitOption) =>
      runAction((session) => changeState(session, name, 'wake', options)),
    )
}
