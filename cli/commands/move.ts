// box move: moves a box to another region.
import type { Command } from 'commander'
import type { BoxDetail } from '../../shared/api/boxes.ts'
import { REGIONS } from '../../shared/tiers.ts'
import { addOutputOptions, type OutputOptions } from '../arguments/options.ts'
import { changeBox } from '../boxes/change-box.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { hasJob } from '../wait/wait-for-box.ts'

export function addMoveCommand(program: Command, runAction: RunAction): void {
  addOutputOptions(
    program
      .command('move')
      .summary('move a box to another region')
      .description(
        'Moves a box with its files to another region, and waits until it has arrived. A running box restarts there: its ' +
          'processes are terminated. When the move fails, the box stays in its region.',
      )
      .argument('<name>', "the box's name or id")
      .argument('<region>', `the new region: ${REGIONS.join(', ')}`),
  )
    .addHelpText(
      'after',
      `
Examples:
  box move fig eu-central-1
  box move fig us-east-1 --no-wait && box events fig --follow

A box can be moved once in 24 hours, and a workspace can move three boxes in 24 hours. Where one machine serves all regions,
a region is a directory of that machine: a move restarts the box there, and copies files only to another disk.`,
    )
    .action((name: string, region: string, options: OutputOptions) =>
      runAction((session) => {
        let reason: string | null | undefined
        return changeBox(
          session,
          name,
          {
            name: 'move',
            route: 'region',
            body: { region },
            rejection: 'move_rejected',
            isMet(detail) {
              reason = detail.events.find(({ fromState }) => fromState === 'migrating')?.reason
              return isMoved(detail, region)
            },
            // The reason says whether files were copied.
            describe: (isComplete) =>
              isComplete ? sanitize(reason ?? `moved to ${region}`) : `moving to ${sanitize(region)}`,
          },
          options,
        )
      }),
    )
}

/** @throws CliError when the move has failed and the box has stayed */
function isMoved(detail: BoxDetail, region: string): boolean {
  const { box, events } = detail
  if (box.desiredRegion !== null || box.observedState === 'migrating' || hasJob(detail, 'move')) return false
  if (box.region === region) return true
  const name = sanitize(box.hostname)
  // A box that was running has been woken since.
  const reason = events.find(({ fromState }) => fromState === 'migrating')?.reason ?? 'no reason was given'
  throw new CliError(
    EXIT.failed,
    `Could not move ${name} to ${sanitize(region)}: ${sanitize(reason)}. The box is in ${sanitize(box.region)}. \`${boxCommand()} events ${name}\` shows what happened.`,
  )
}
