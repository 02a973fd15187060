// box attach: attaches to a terminal session of a box.
import type { Command } from 'commander'
import type { RunAction } from '../connection/session.ts'
import { requireTerminal } from '../terminal/create-session.ts'
import { ESCAPE_HELP } from '../terminal/escape-keys.ts'
import { findSessionName } from '../terminal/find-session.ts'

export function addAttachCommand(program: Command, runAction: RunAction): void {
  program
    .command('attach')
    .summary('attach to a terminal session of a box')
    .description(
      'Attaches to a terminal session that `box ssh` or `box exec -it` started, and shows its current screen. Several ' +
        'clients can be attached to one session.',
    )
    .argument('<name>', "the box's name or id")
    .argument('[session]', 'the name of the session, or its first characters (default: the newest)')
    .addHelpText(
      'after',
      `
Examples:
  box attach fig
  box attach fig work
  box sessions fig    lists the sessions

${ESCAPE_HELP}

The exit codes are those of \`box ssh\`.`,
    )
    .action((boxName: string, typed: string | undefined) =>
      runAction(async (session) => {
        requireTerminal('box attach needs one.')
        const edge = await session.client.createEdgeClient(boxName)
        const name = typed === undefined ? null : await findSessionName(edge, typed)
        const { runTerminal } = await import('../terminal/run-terminal.ts')
        return (await runTerminal(session, edge, { session: name, start: null })).exitCode
      }),
    )
}
