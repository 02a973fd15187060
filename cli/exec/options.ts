// The options of box exec and box run that apply to the command.
import { type Command, Option } from 'commander'
import { LIMITS } from '../../shared/limits.ts'
import { createIntegerParser, createJsonOption, createNumberParser } from '../arguments/options.ts'

export const addExecOptions = (command: Command): Command =>
  command
    .option('-d, --detach', 'run the command in the background')
    .option('-i, --interactive', 'forward stdin also when it is a terminal')
    .option('-t, --tty', 'run the command in a terminal, as box ssh does; stdin must be a terminal')
    .option('-n, --no-stdin', 'do not forward stdin')
    .option(
      '-w, --cwd <directory>',
      'working directory: absolute, or relative to the home directory (default)',
    )
    .addOption(new Option('--workdir <directory>').hideHelp())
    .option(
      '--timeout <seconds>',
      'kill the command after this time, 1 to 600 (default: none; with --json: 30)',
      createNumberParser('--timeout', LIMITS.execTimeoutSeconds),
    )
    .option(
      '--disconnect-timeout <seconds>',
      `kill the command when this client has been disconnected for this time, 1 to 3600 (default: ${LIMITS.disconnectTimeoutSeconds.default})`,
      createIntegerParser('--disconnect-timeout', LIMITS.disconnectTimeoutSeconds),
    )
    .addOption(createJsonOption('print the result as JSON when the command has exited; forwards no stdin'))
