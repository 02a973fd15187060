// box ps-at: lists the processes of a past moment.
import type { Command } from 'commander'
import type { ProcsAt } from '../../shared/api/process-snapshots.ts'
import { parseTime } from '../arguments/parse-time.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { CliError } from '../output/exit-codes.ts'
import { formatLocalTime } from '../output/format.ts'
import { createSnapshotList, SNAPSHOT_FILTERS, toLoadedSnapshot } from '../processes/snapshot-list.ts'

export function addPsAtCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('ps-at')
      .summary('list the processes of a box at a past moment')
      .description(
        'Lists the processes and listening ports of a box at a past moment, those with the most CPU usage first. The box ' +
          'takes a snapshot every minute. Snapshots are kept for 30 days, also while the box is suspended.',
      )
      .argument('<name>', "the box's name or id; also of a deleted box")
      .argument('<time...>', 'a time of day, a date and time, or a duration before now'),
    'the pids',
    SNAPSHOT_FILTERS,
    { hasWatch: false },
  )
    .addHelpText(
      'after',
      `
Examples:
  box ps-at fig 03:14                         the most recent 03:14, local time
  box ps-at fig yesterday 03:14
  box ps-at fig 2h                            two hours before now
  box ps-at fig 2026-01-31T03:14:00Z
  box ps-at fig 03:14 --filter port=8080
  box ps-at fig 03:14 --json | jq '.procs[] | select(.cpuPct > 50)'

%CPU is the usage of one CPU since the previous snapshot. The nearest snapshot within five minutes is printed; its time is on
stderr. Without one, the exit code is 5.`,
    )
    .action((name: string, words: string[], options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const time = parseTime('The time', words.join(' '), Date.now())
        const { id, hostname } = await findBoxWithRecords(client, name)
        const query = new URLSearchParams({ t: new Date(time).toISOString() })
        const load = async () =>
          toLoadedSnapshot(
            await client
              .request<ProcsAt>('GET', `/boxes/${encodeURIComponent(id)}/procs-at?${query}`)
              .catch(throwWithLocalTimes),
            time,
          )
        return printList(createSnapshotList(hostname), load, options, signal)
      }),
    )
}

/** The messages of the API have times in UTC. The times that the user types are local. */
function throwWithLocalTimes(error: unknown): never {
  if (!(error instanceof CliError) || error.code === null) throw error
  const message = error.message.replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z\b/g, (text) => {
    const time = Date.parse(text)
    return Number.isNaN(time) ? text : formatLocalTime(time)
  })
  throw new CliError(error.exitCode, message, { code: error.code, fields: error.fields, cause: error })
}
