// box forward: makes TCP ports of a box available on this machine.
import type { Command } from 'commander'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { isSuspended } from '../output/box-state.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

export function addForwardCommand(program: Command, runAction: RunAction): void {
  program
    .command('forward')
    .summary('make ports of a box available on this machine')
    .description(
      'Listens on ports of this machine (127.0.0.1 and ::1), and connects each connection to a TCP port of the box, until ' +
        'Ctrl-C. Any protocol works: HTTP, WebSockets, databases. Does not wake a suspended box.',
    )
    .argument('<name>', "the box's name or id")
    .argument(
      '<ports...>',
      'PORT, or LOCAL:REMOTE where the port of this machine is another one; 0:REMOTE selects a free port',
    )
    .addOption(createJsonOption('print a line of JSON for each port when it is ready'))
    .addHelpText(
      'after',
      `
Examples:
  box forward fig 3000              http://localhost:3000 is port 3000 of fig
  box forward fig 8080:3000 5432    several ports; port 3000 of fig is 8080 here
  psql -h localhost -U postgres     with \`box forward fig 5432\` in another terminal
  box ports fig                     lists the ports on which the box listens

New connections work again after a restart of the coordinator. The connections that are open then are closed. When nothing listens on the
port of the box, a connection is closed, and a message is printed.`,
    )
    .action((name: string, ports: string[], options: JsonOption) =>
      runAction((session) => forward(session, name, ports, options)),
    )
}

async function forward(
  session: Session,
  name: string,
  ports: string[],
  { json = false }: JsonOption,
): Promise<number> {
  // Imported here: these modules load ws.
  const [{ parseForwards }, { runForward }] = await Promise.all([
    import('../forward/parse-forward.ts'),
    import('../forward/run-forward.ts'),
  ])
  const forwards = parseForwards(ports)
  const edge = await session.client.createEdgeClient(name)
  const { noSuchBox, observedState, boxName } = edge
  if (noSuchBox !== null) throw noSuchBox
  if (observedState !== null && isSuspended(observedState))
    throw new CliError(EXIT.failed, `Box ${boxName} is suspended. Start it with \`box wake ${boxName}\`.`, {
      code: 'box_not_running',
    })
  await runForward(session, edge, forwards, { json })
  return EXIT.ok
}
