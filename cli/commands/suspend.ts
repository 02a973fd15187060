// box suspend: pauses a box.
import type { Command } from 'commander'
import { changeState } from '../change-state.ts'
import { type JsonOption, jsonOption, noWaitOption, type WaitOption } from '../options.ts'
import type { Run } from '../session.ts'

export function addSuspend(program: Command, run: Run): void {
  program
    .command('suspend')
    .summary('pause a box')
    .description(
      `Ends the box's processes and keeps its files. \`box wake\` or the next \`box exec\` starts it again.`,
    )
    .argument('<name>', 'its name or id')
    .addOption(noWaitOption())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Example:
  box suspend fig && box ls`,
    )
    .action((name: string, options: JsonOption & WaitOption) =>
      run((session) => changeState(session, name, 'suspend', 'suspended', options)),
    )
}
