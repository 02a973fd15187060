// box metrics: shows the CPU, memory, disk and network usage of a box over time.
import { type Command, Option } from 'commander'
import type { Metrics } from '../../shared/api/metrics.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { parseDuration, parseTime } from '../arguments/parse-time.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson } from '../output/print.ts'
import { getTerminalWidth } from '../output/table.ts'
import { isUnicodeSupported } from '../output/unicode-support.ts'

type Options = JsonOption & { last?: number; from?: number; to?: number; csv?: boolean }

const MAX_LAST_MS = 30 * 86_400_000
/** When stdout is not a terminal. */
const DEFAULT_WIDTH = 100

export function addMetricsCommand(program: Command, runAction: RunAction): void {
  program
    .command('metrics')
    .summary('show the CPU, memory, disk and network usage over time')
    .description(
      'Shows the usage of a box over time: a sparkline for each series, with its last value, mean and maximum. A space in a ' +
        'sparkline is a time without samples, for example while the box was suspended. Samples are kept for 30 days.',
    )
    .argument('<name>', "the box's name or id; also of a deleted box")
    .addOption(
      new Option('--last <duration>', 'the time span until now: 30m, 24h, 7d, at most 30d (default: 1h)')
        .argParser(parseLast)
        .conflicts(['from', 'to']),
    )
    .option(
      '--from <time>',
      'start: a time of day (03:14), a date and time (2026-01-31T09:30) or a duration before now; default: one hour before the end',
      (text) => parseTime('--from', text, Date.now()),
    )
    .option('--to <time>', 'end: as for --from; default: now', (text) => parseTime('--to', text, Date.now()))
    .addOption(createJsonOption('print the response of the API').conflicts('csv'))
    .option('--csv', 'print a row per bucket, with the mean and the maximum of each series')
    .addHelpText(
      'after',
      `
Examples:
  box metrics fig
  box metrics fig --last 24h
  box metrics fig --from 03:00 --to 04:00
  box metrics fig --from 2026-01-31T09:30 --to 2026-01-31T08:45:00Z
  box metrics fig --last 7d --csv > fig.csv
  box metrics fig --json | jq .series.cpu_pct.max

Up to 6 hours have a value per 30 seconds, up to 3 days per 5 minutes, longer spans per hour. Times without a zone are local.
--csv prints UTC, and values in percent, bytes and bytes per second. What is not measured for a box, because it belongs to the
host, is named below the table.`,
    )
    .action((name: string, options: Options) =>
      runAction(async ({ client }) => {
        const { last, from = last === undefined ? undefined : Date.now() - last, to, json, csv } = options
        if (from !== undefined && to !== undefined && from >= to)
          throw new CliError(EXIT.usage, '--from must be before --to.')
        const { id, hostname } = await findBoxWithRecords(client, name)
        const query = new URLSearchParams()
        if (from !== undefined) query.set('from', new Date(from).toISOString())
        if (to !== undefined) query.set('to', new Date(to).toISOString())
        const path = `/boxes/${encodeURIComponent(id)}/metrics${query.size > 0 ? `?${query}` : ''}`
        const metrics = await client.request<Metrics>('GET', path)
        if (json) printJson(metrics)
        else if (csv) {
          const { formatMetricsCsv } = await import('../metrics/csv.ts')
          process.stdout.write(formatMetricsCsv(metrics))
        } else {
          const { formatMetrics } = await import('../metrics/format-metrics.ts')
          const width = process.stdout.isTTY ? getTerminalWidth() : DEFAULT_WIDTH
          print(formatMetrics(hostname, metrics, { width, isUnicode: isUnicodeSupported(process.env) }))
        }
        return undefined
      }),
    )
}

function parseLast(text: string): number {
  const duration = parseDuration(text)
  if (duration !== null && duration > 0 && duration <= MAX_LAST_MS) return duration
  throw new CliError(EXIT.usage, '--last must be a duration such as 30m, 24h or 7d, at most 30d.')
}
