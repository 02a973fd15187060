// box create: creates a box and waits until the box is running.
import type { Command } from 'commander'
import { addOutputOptions } from '../arguments/options.ts'
import { addCreateOptions, type CreateOptions, createBox } from '../boxes/create-box.ts'
import { finishCreation, type NewBoxOptions, selectName } from '../boxes/new-box.ts'
import type { RunAction } from '../connection/session.ts'

type Options = CreateOptions & NewBoxOptions

export function addCreateCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('create')
    .summary('create a box')
    .description(
      'Creates a box and waits until the box is running. Prints the name on stdout and the state changes on stderr.',
    )
    .argument('[name]', 'name of the box (default: a fruit name)')
    .option('--name <name>', 'the same as the argument')
  addOutputOptions(addCreateOptions(command))
    .addHelpText(
      'after',
      `
Examples:
  box create
  box create fig -e TOKEN=abc                  sets TOKEN for every command on the box
  box create -e TOKEN                          copies the value from the local environment
  box create fig --label team=web              for box ls --label team=web
  box create fig --image debian:12             with root, apt-get and a file system of its own
  box create fig --from web                    with the files of a template or snapshot
  BOX=$(box create) && box exec $BOX -- make test`,
    )
    .action((argument: string | undefined, options: Options) =>
      runAction(async (session) => {
        const name = selectName(argument, options.name)
        const box = await createBox(session.client, { ...options, ...(name !== undefined && { name }) })
        await finishCreation(session, box, options)
        return undefined
      }),
    )
}
