// box wait: waits until boxes have a state, or until snapshots are available.
import { type Command, Option } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import { parseDuration } from '../arguments/parse-time.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { formatBoxState } from '../output/box-state.ts'
import { colorize, getStateColor } from '../output/colors.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatSetting } from '../output/format.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import { getProgress, hasStatusLine } from '../output/status-line.ts'
import { findSnapshot, isSnapshotId } from '../snapshots/find-snapshot.ts'
import { waitForSnapshot } from '../snapshots/wait-for-snapshot.ts'
import { BOX_TARGETS, type BoxTarget, isTargetReached } from '../wait/conditions.ts'
import { waitForBox } from '../wait/wait-for-box.ts'

type Options = JsonOption & QuietOption & { for?: BoxTarget | 'available'; timeout?: number }

export function addWaitCommand(program: Command, runAction: RunAction): void {
  program
    .command('wait')
    .summary('wait for a state of boxes, or for snapshots')
    .description(
      'Waits until the current change of each box is complete, or until it has the state of --for. Waits until a snapshot, ' +
        'given by its id, is available. Prints the states on stderr.',
    )
    .argument('<name...>', 'names or ids of boxes, or ids of snapshots')
    .addOption(
      new Option(
        '--for <state>',
        'wait for a state of box ls, for stopped (suspended, without processes) or deleted; for a snapshot: available',
      ).choices([...BOX_TARGETS, 'available']),
    )
    .option(
      '--timeout <duration>',
      'stop waiting after this time, such as 90s or 5m; exit with 124',
      parseTimeout,
    )
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box resize fig pro --no-wait; box wait fig
  box wait fig plum --for running --timeout 5m
  box wait $(box snapshot fig --no-wait)

Exit codes:
  1    the state cannot be reached: the box was deleted or could not be created, or the snapshot has failed
  124  the time of --timeout has passed`,
    )
    .action((names: string[], options: Options) =>
      runAction((session) => waitForAll(session, names, options)),
    )
}

/** Returns the exit code. All names have the same deadline. */
async function waitForAll(session: Session, names: string[], options: Options): Promise<number> {
  const { timeout = Number.POSITIVE_INFINITY } = options
  const deadline = Date.now() + timeout
  const batch = startBatch(names)
  await batch.run([...new Set(names)], async (name) => {
    const limits = {
      timeoutMs: deadline - Date.now(),
      createTimeoutError: () =>
        new CliError(
          EXIT.timedOut,
          `${sanitize(name)}: not ${options.for ?? 'complete'} after ${formatSetting(timeout)}. \`${boxCommand()} ${isSnapshotId(name) ? 'snapshots' : `show ${sanitize(name)}`}\` shows the state.`,
          { code: 'timed_out' },
        ),
    }
    const result = isSnapshotId(name)
      ? await waitForOneSnapshot(session, name, options, limits)
      : await waitForOneBox(session, name, options, limits)
    if (options.json) printJson(result)
  })
  return batch.exitCode
}

type Limits = { timeoutMs: number; createTimeoutError(): CliError }

async function waitForOneBox(
  session: Session,
  name: string,
  options: Options,
  limits: Limits,
): Promise<Box | null> {
  const target = options.for ?? null
  if (target === 'available')
    throw new CliError(
      EXIT.usage,
      `--for available is for snapshots, and ${sanitize(name)} is not an id of one.`,
    )
  const progress = getProgress(options)
  const found = await session.client.findBox(name).catch((error) => {
    // The deletion may have been completed before.
    if (target === 'deleted' && error instanceof CliError && error.code === 'no_such_box') return null
    throw error
  })
  if (found === null) {
    if (progress !== 'none') printStderr(`${sanitize(name)}: no such box`)
    return null
  }
  const box = await waitForBox(session, found, progress, {
    subject: sanitize(name),
    ...limits,
    isMet: (detail) => isTargetReached(detail, target),
  })
  printFinal(box.hostname, formatBoxState(box), box.observedState, options)
  return box
}

async function waitForOneSnapshot(
  session: Session,
  typed: string,
  options: Options,
  limits: Limits,
): Promise<Snapshot> {
  if (options.for !== undefined && options.for !== 'available')
    throw new CliError(EXIT.usage, `--for ${options.for} is for boxes, and ${sanitize(typed)} is a snapshot.`)
  const snapshot = await waitForSnapshot(
    session,
    await findSnapshot(session.client, typed),
    getProgress(options),
    limits,
  )
  if (getProgress(options) !== 'none')
    printStderr(
      `${sanitize(snapshot.name)}: ${colorize('available', getStateColor('available'), process.stderr)}`,
    )
  return snapshot
}

/** On a terminal the changing line disappears: prints the final state in its position. */
function printFinal(name: string, text: string, state: string, options: Options): void {
  if (getProgress(options) !== 'none' && hasStatusLine())
    printStderr(`${sanitize(name)}: ${colorize(sanitize(text), getStateColor(state), process.stderr)}`)
}

function parseTimeout(text: string): number {
  const timeout = parseDuration(text)
  if (timeout !== null && timeout > 0) return timeout
  throw new CliError(EXIT.usage, '--timeout must be a duration such as 90s, 5m or 1h.')
}
