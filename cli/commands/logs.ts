// box logs: prints the output of a detached process; with -f until the process exits.
import { type Command, CommanderError, Option } from 'commander'
import { createIntegerParser } from '../arguments/options.ts'
import { parseTime } from '../arguments/parse-time.ts'
import { addSelectionOptions, getSelectionOption, type SelectionOptions } from '../boxes/select-boxes.ts'
import type { RunAction } from '../connection/session.ts'
import type { LogsOptions } from '../logs/print-logs.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

const COUNT_RANGE = { min: 0, max: 999_999_999 }

export function addLogsCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('logs')
    .summary('print the output of a detached process')
    .description(
      'Prints the output of a process that `box exec -d` started, byte for byte: its stdout to stdout, its stderr to ' +
        'stderr. With -f it continues until the process exits, and reconnects when needed.',
    )
    .argument('[name]', "the box's name or id; omitted with --all and --label")
    .argument(
      '[id...]',
      'the id from `box exec -d` or `box ps`, or its first characters (default: the newest process); or the names of further boxes',
    )
    .usage('[options] <name> [id]\n       box logs [options] <name> <name...>|--all|--label <key[=value]>')
  addSelectionOptions(command, 'print the newest process of', 'boxes')
    .option('-f, --follow', 'follow the output until the process exits, and exit with its code')
    .option(
      '-n, --tail <lines>',
      'start with the last <lines> lines of each stream',
      createIntegerParser('--tail', COUNT_RANGE),
    )
    .addOption(
      new Option('--bytes <count>', 'start with the last <count> bytes of each stream; not with --tail')
        .argParser(createIntegerParser('--bytes', COUNT_RANGE))
        .conflicts('tail'),
    )
    .option(
      '--since <time>',
      'start with the output written since a time: a duration before now (90s, 10m, 2h, 1d), a time of day (03:14) or a date and time (2026-01-31T09:30)',
      (text) => parseTime('--since', text, Date.now()),
    )
    .option('-t, --timestamps', 'print the time before each line')
    .option('--json', 'print one JSON object per line, with the bytes in base64')
    .addHelpText(
      'after',
      `
Examples:
  box logs fig                               the newest process
  box logs -f fig p_8b49
  box logs -f fig $(box exec -d fig -- make world)
  box logs -n 20 fig
  box logs -f -n 0 fig $ID                   only new output
  box logs -t --since 10m fig
  box logs fig $ID 2>/dev/null | sha256sum
  box logs fig plum                          the newest process of each box
  box logs -f --label team=web

-f reconnects automatically if a connection or the coordinator fails; no byte is lost or repeated. stderr reports a long
outage, and how many bytes are missing if the box has discarded the oldest output. After Ctrl-C the
process continues. With several boxes, each line starts with the name of its box, and the exit code is the highest one. A second
argument of the digits 0 to 9 and a to f is an id, any other is the name of a box. While the box is not running, box logs prints the output that the history has stored.

Exit codes with -f:
  N    that of the command, or 128 + n if signal n killed it
  125  the exit status is unknown (the process is lost), or box logs itself failed
  130  Ctrl-C`,
    )
    .action((name: string | undefined, others: string[], options: LogsOptions & SelectionOptions) => {
      const option = getSelectionOption(options)
      if (option !== null && name !== undefined)
        throw new CliError(EXIT.usage, `${option} cannot be combined with names of boxes.`)
      if (option === null && name === undefined)
        throw new CommanderError(1, 'commander.missingArgument', "error: missing required argument 'name'")
      const [second] = others
      const id = others.length === 1 && second !== undefined && isProcessId(second) ? second : undefined
      return runAction(async (session) => {
        // Imported here: the other commands do not need it, and it would slow their start.
        if (name !== undefined && others.length === (id === undefined ? 0 : 1)) {
          const { printLogs } = await import('../logs/print-logs.ts')
          return printLogs(session, name, id, options)
        }
        const { printLogsOfBoxes } = await import('../logs/print-logs-of-boxes.ts')
        return printLogsOfBoxes(session, name === undefined ? [] : [name, ...others], options)
      })
    })
}

/** Whether the text can be the start of an id. */
const isProcessId = (text: string): boolean => /^(p_.*|[0-9a-f]+)$/.test(text)
