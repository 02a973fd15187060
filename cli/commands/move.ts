// box move: moves a box to another region.
import type { Command } from 'commander'
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { REGIONS } from '../../shared/tiers.ts'
import { boxCommand } from '../command-name.ts'
import { printIfInterrupted } from '../exec/request.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import {
  createJsonOption,
  createNoWaitOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
  type WaitOption,
} from '../options.ts'
import { printJson, printStderr, sanitize } from '../output.ts'
import { addHints, getWaitHint } from '../refusals.ts'
import type { RunAction } from '../session.ts'
import { getProgress } from '../status-line.ts'
import { hasJob, waitForBox } from '../wait/wait-for-box.ts'

type Options = JsonOption & QuietOption & WaitOption

export function addMoveCommand(program: Command, runAction: RunAction): void {
  program
    .command('move')
    .summary('move a box to another region')
    .description(
      'Moves a box with its files to another region, and waits until it has arrived. A running box restarts there: its ' +
        'processes are terminated. When the move fails, the box stays in its region.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<region>', `the new region: ${REGIONS.join(', ')}`)
    .addOption(createNoWaitOption())
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box move fig eu-central-1
  box move fig us-east-1 --no-wait && box events fig --follow

A box can be moved once in 24 hours, and a workspace can move three boxes in 24 hours.`,
    )
    .action((name: string, region: string, options: Options) =>
      runAction(async (session) => {
        const { client } = session
        const box = await client.findBox(name)
        const { hostname } = box
        const response = await addHints(
          client.request<{ box: Box }>('POST', `/boxes/${box.id}/region`, { region }),
          {
            move_rejected: getWaitHint(box),
          },
        )
        const moved = options.wait
          ? await printIfInterrupted(
              session,
              `interrupted. The move of ${hostname} continues: \`${boxCommand()} wait ${hostname}\` waits for it.`,
              () =>
                waitForBox(session, response.box, getProgress(options), {
                  subject: `The move of ${hostname}`,
                  isMet: (detail) => isMoved(detail, region),
                }),
            )
          : response.box
        if (options.json) printJson(moved)
        else if (!options.quiet)
          printStderr(`${hostname}: ${options.wait ? 'moved' : 'moving'} to ${sanitize(region)}`)
        return undefined
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
