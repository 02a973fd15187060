// box wake: starts a suspended box.
import type { Command } from 'commander'
import { changeState } from '../change-state.ts'
import { type JsonOption, jsonOption, noWaitOption, type WaitOption } from '../options.ts'
import type { Run } from '../session.ts'

export function addWake(program: Command, run: Run): void {
  program
    .command('wake')
    .summary('start a suspended box')
    .description(`Starts a suspended box and waits until it runs. \`box exec\` does so by itself.`)
    .argument('<name>', 'its name or id')
    .addOption(noWaitOption())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Example:
  box wake fig && box cp notes.md fig:`,
    )
    .action((name: string, options: JsonOption & WaitOption) =>
      run((session) => changeState(session, name, 'wake', 'running', options)),
    )
}
