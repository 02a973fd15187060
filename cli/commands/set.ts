// box set: changes the schedules of boxes: when they are suspended or deleted, and when snapshots are taken.
import { type Command, Option } from 'commander'
import type { Box, PatchBoxRequest } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import {
  allowOff,
  createDurationParser,
  createIntegerParser,
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type OrOff,
  offToNull,
  type QuietOption,
} from '../arguments/options.ts'
import { parseFutureTime } from '../arguments/parse-time.ts'
import { formatSchedules } from '../boxes/schedules.ts'
import { findBoxes } from '../boxes/select-boxes.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'

type Settings = {
  ttl?: OrOff<number>
  deleteAfter?: OrOff<number>
  pauseAt?: OrOff<string>
  autoPause?: OrOff<number>
  autoSnapshot?: OrOff<number>
  keep?: number
  quietHoursExempt?: 'on' | 'off'
}
type Options = JsonOption & QuietOption & Settings

export function addSetCommand(program: Command, runAction: RunAction): void {
  program
    .command('set')
    .summary('set when boxes are suspended or deleted, and when snapshots are taken')
    .description(
      'Sets when boxes are suspended or deleted, and when snapshots of them are taken. Prints the settings on stderr. The value `off` ' +
        'removes a setting.',
    )
    .argument('<name...>', 'names or ids of boxes')
    .addOption(
      new Option(
        '--ttl <duration>',
        'suspend the box after this time: 5m to 30d, or off; a number alone is minutes',
      )
        .argParser(allowOff(createDurationParser('--ttl', 'minutes', LIMITS.ttlMinutes)))
        .conflicts('pauseAt'),
    )
    .option(
      '--pause-at <time>',
      'suspend the box at this time: 18:00, 2026-01-31T09:30, or off; at most 30 days from now',
      allowOff((text) => new Date(parseFutureTime('--pause-at', text, Date.now())).toISOString()),
    )
    .option(
      '--delete-after <duration>',
      'delete the box with its files after this time from now: 5m to 365d, or off; a number alone is minutes',
      allowOff(createDurationParser('--delete-after', 'minutes', LIMITS.deleteAfterMinutes)),
    )
    .option(
      '--auto-pause <duration>',
      'suspend the box when it was idle for this time: 30m to 7d, or off; a number alone is minutes',
      allowOff(createDurationParser('--auto-pause', 'minutes', LIMITS.autoPauseMin)),
    )
    .option(
      '--auto-snapshot <duration>',
      'take a snapshot at this interval: 1h to 7d, or off; a number alone is hours',
      allowOff(createDurationParser('--auto-snapshot', 'hours', LIMITS.autoSnapshotHours)),
    )
    .option(
      '--keep <count>',
      'automatic snapshots to keep, 1 to 10; older ones are deleted',
      createIntegerParser('--keep', LIMITS.autoSnapshotKeep),
    )
    .addOption(
      new Option('--quiet-hours-exempt <on|off>', 'exempt the box from quiet hours')
        .choices(['on', 'off'])
        .hideHelp(),
    )
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box set fig --ttl 2h
  box set fig --pause-at 18:00
  box set fig --delete-after 2h
  box set fig plum --auto-pause 30m
  box set fig --auto-snapshot 24h --keep 7
  box set fig --auto-pause off --auto-snapshot off

--ttl and --pause-at set the same deadline. It needs a running box, and ends with the next suspend. Running commands, open
terminals, traffic through shared ports and CPU usage are not idle. With several boxes, each one is tried; the exit code is
that of the first failure.`,
    )
    .action((names: string[], options: Options) =>
      runAction((session) => setSchedules(session, names, options)),
    )
}

/** Returns the exit code. */
async function setSchedules(session: Session, names: string[], options: Options): Promise<number> {
  const request = toRequest(options)
  if (Object.keys(request).length === 0)
    throw new CliError(
      EXIT.usage,
      'Nothing to set. Use --ttl, --pause-at, --delete-after, --auto-pause, --auto-snapshot or --keep. `box show NAME` shows the settings.',
    )
  const batch = startBatch(names)
  const boxes = await findBoxes(session.client, names, batch.run)
  await batch.run(boxes, async ({ id }) => {
    const { box } = await session.client.request<{ box: Box }>('PATCH', `/boxes/${id}`, request)
    if (options.json) printJson(box)
    else if (!options.quiet) printStderr(`${box.hostname}: ${sanitize(formatSettings(box))}`)
  })
  return batch.exitCode
}

const toRequest = ({
  ttl,
  deleteAfter,
  pauseAt,
  autoPause,
  autoSnapshot,
  keep,
  quietHoursExempt,
}: Settings): PatchBoxRequest => ({
  ...(ttl !== undefined && { ttlMinutes: offToNull(ttl) }),
  ...(pauseAt !== undefined && { pauseAt: offToNull(pauseAt) }),
  ...(deleteAfter !== undefined && { deleteAfterMinutes: offToNull(deleteAfter) }),
  ...(autoPause !== undefined && { autoPauseMin: offToNull(autoPause) }),
  ...(autoSnapshot !== undefined && { autoSnapshotHours: offToNull(autoSnapshot) }),
  ...(keep !== undefined && { autoSnapshotKeep: keep }),
  ...(quietHoursExempt !== undefined && { quietHoursExempt: quietHoursExempt === 'on' }),
})

function formatSettings(box: Box): string {
  const settings = formatSchedules(box, Date.now()).map(([name, text]) => `${name} ${text}`)
  return settings.length > 0 ? settings.join('; ') : 'no schedules'
}
