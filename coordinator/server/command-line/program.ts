// Creates the command line of `boxwood`, whose commands work on the data directory of a coordinator.

import { Command } from 'commander'
import { formatUsageMessage } from '../../../shared/usage-message.ts'
import { VERSION } from '../../../shared/version.ts'
import { addBackupCommand } from './backup.ts'
import { addFederationCommand } from './federation.ts'
import { addOperatorCommands } from './operator.ts'
import { addPlatformCommand } from './platform.ts'
import { addRestoreCommand } from './restore.ts'
import { addRotateMasterKeyCommand } from './rotate-master-key.ts'

const HELP = `
Without a command, boxwood starts the coordinator in the foreground. \`box up\` starts it in the background. The commands
for boxes are those of \`box\`.

The data directory is BOXWOOD_DATA, else .boxwood in the current directory, else .boxwood in the directory of Boxwood, or
in your home directory if npm has installed Boxwood. \`box docs install\` has instructions, \`box docs configuration\`
the variables.`

const EXAMPLES: Record<string, string> = {
  'boxwood credit': 'boxwood credit ada@example.com 25.00',
  'boxwood hold': 'boxwood hold ada@example.com cpu',
  'boxwood release': 'boxwood release ada@example.com',
}

export function createProgram(signal: AbortSignal): Command {
  const program = new Command('boxwood')
    .description('The coordinator of Boxwood.')
    .version(VERSION, '-v, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .usage('[command]')
    .addHelpText('after', HELP)
    .configureOutput({ outputError: (text, write) => write(`boxwood: ${formatUsageMessage(text)}`) })
    .exitOverride()
  addBackupCommand(program, signal)
  addRestoreCommand(program, signal)
  addPlatformCommand(program, signal)
  addRotateMasterKeyCommand(program)
  addOperatorCommands(program, signal)
  addFederationCommand(program, signal)
  explainUsage(program, 'boxwood')
  return program
}

/** An error names the arguments, and the help page. @param path such as `boxwood ledger` */
function explainUsage(command: Command, path: string): void {
  const help = `See '${path} --help'.`
  const example = EXAMPLES[path]
  if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${example}`)
  command.showHelpAfterError(
    command.registeredArguments.length === 0
      ? help
      : `Usage: ${path} ${command.usage()}${example === undefined ? '' : `, such as \`${example}\``}\n${help}`,
  )
  for (const subcommand of command.commands) explainUsage(subcommand, `${path} ${subcommand.name()}`)
}
