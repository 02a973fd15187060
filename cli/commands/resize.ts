// box resize: changes the tier of a box.
import { Argument, type Command } from 'commander'
import type { BoxDetail } from '../../shared/api/boxes.ts'
import { TIER_NAMES } from '../../shared/tiers.ts'
import { addOutputOptions, type OutputOptions } from '../arguments/options.ts'
import { describeTier } from '../boxes/box-size.ts'
import { changeBox } from '../boxes/change-box.ts'
import type { RunAction } from '../connection/session.ts'
import { sanitize } from '../output/print.ts'
import { hasJob } from '../wait/wait-for-box.ts'

export function addResizeCommand(program: Command, runAction: RunAction): void {
  addOutputOptions(
    program
      .command('resize')
      .summary('change the tier of a box')
      .description(
        'Changes the tier of a box: its CPUs, memory and disk. In a region with live resize (box regions), the processes of a running ' +
          'box continue. Elsewhere the box restarts: its files are kept, its processes are terminated. A suspended box stays suspended.',
      )
      .argument('<name>', "the box's name or id")
      .addArgument(new Argument('<tier>', `the new tier: ${TIER_NAMES.join(', ')}`)),
  )
    .addHelpText(
      'after',
      `
Examples:
  box resize fig pro
  box resize fig nano --no-wait && box wait fig`,
    )
    .action((name: string, tier: string, options: OutputOptions) =>
      runAction((session) => {
        let size: BoxDetail['size'] | undefined
        return changeBox(
          session,
          name,
          {
            name: 'resize',
            route: 'resize',
            body: { target_tier: tier },
            rejection: 'resize_rejected',
            isMet(detail) {
              size = detail.size
              return isResized(detail, tier)
            },
            describe: (isComplete) =>
              isComplete ? `resized to ${describeTier(tier, size)}` : `resizing to ${sanitize(tier)}`,
          },
          options,
        )
      }),
    )
}

const isResized = (detail: BoxDetail, tier: string): boolean =>
  detail.box.tier === tier && detail.box.observedState !== 'resizing' && !hasJob(detail, 'resize')
