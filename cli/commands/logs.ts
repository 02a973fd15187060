// box logs: prints the output of a detached process; with -f until the process exits.
import { type Command, Option } from 'commander'
import { createIntegerParser } from '../arguments/options.ts'
import { parseTime } from '../arguments/parse-time.ts'
import type { RunAction } from '../connection/session.ts'
import type { LogsOptions } from '../logs/print-logs.ts'

const COUNT_RANGE = { min: 0, max: 999_999_999 }

export function addLogsCommand(program: Command, runAction: RunAction): void {
  program
    .command('logs')
    .summary('print the output of a detached process')
    .description(
      'Prints the output of a process that `box exec -d` started, byte for byte: its stdout to stdout, its stderr to ' +
        'stderr. With -f it continues until the process exits, and reconnects when needed.',
    )
    .argument('<name>', "the box's name or id")
    .argument(
      '[id]',
      'the id from `box exec -d` or `box ps`, or its first characters (default: the newest process)',
    )
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

-f reconnects automatically if a connection or the coordinator fails; no byte is lost or repeated. stderr reports a long
outage, and how many bytes are missing if the box has discarded the oldest output. After Ctrl-C the
process continues. While the box is not running, box logs prints the output that the history has stored.

Exit codes with -f:
  N    that of the command, or 128 + n if signal n killed it
  125  the exit status is unknown (the process is lost), or box logs itself failed
  130  Ctrl-C`,
    )
    .action((name: string, id: string | undefined, options: LogsOptions) =>
      runAction(async (session) => {
        // Imported here: the other commands do not need it, and it would slow their start.
        const { printLogs } = await import('../logs/print-logs.ts')
        return printLogs(session, name, id, options)
      }),
    )
}
