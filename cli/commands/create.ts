// box create: creates a box and waits until the box is running.
import type { Command } from 'commander'
import { boxCommand } from '../command-name.ts'
import { addCreateOptions, type CreateOptions, createBox, printUnenforcedOptions } from '../create-box.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import {
  createJsonOption,
  createNoWaitOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
  type WaitOption,
} from '../options.ts'
import { print, printJson, printStderr, sanitize } from '../output.ts'
import type { RunAction } from '../session.ts'
import { getProgress } from '../status-line.ts'
import { waitForState } from '../wait.ts'

type Options = CreateOptions & JsonOption & QuietOption & WaitOption

export function addCreateCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('create')
    .summary('create a box')
    .description(
      'Creates a box and waits until the box is running. Prints the name on stdout and the state changes on stderr.',
    )
    .argument('[name]', 'name of the box (default: a fruit name)')
    .option('--name <name>', 'the same as the argument')
  addCreateOptions(command)
    .addOption(createNoWaitOption())
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box create
  box create fig -e TOKEN=abc                  sets TOKEN for every command on the box
  box create -e TOKEN                          copies the value from the local environment
  BOX=$(box create) && box exec $BOX -- make test`,
    )
    .action((argument: string | undefined, options: Options) =>
      runAction(async (session) => {
        const name = selectName(argument, options.name)
        const createdBox = await createBox(session.client, {
          ...options,
          ...(name !== undefined && { name }),
        })
        const box = options.wait
          ? await waitForState(session, createdBox, 'running', getProgress(options))
          : createdBox
        printUnenforcedOptions(options)
        if (options.json) printJson(box)
        else print(box.hostname)
        if (getProgress(options) !== 'none' && process.stdout.isTTY)
          printStderr(`Run a command on the box: ${boxCommand()} exec ${box.hostname} -- uname -a`)
        return undefined
      }),
    )
}

function selectName(argument: string | undefined, option: string | undefined): string | undefined {
  if (argument !== undefined && option !== undefined && argument !== option)
    throw new CliError(
      EXIT.usage,
      `Two names were given: '${sanitize(argument)}' and '${sanitize(option)}' (--name). Use one.`,
    )
  return argument ?? option
}
