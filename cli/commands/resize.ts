// box resize: changes the tier of a box.
import { Argument, type Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import { TIER_NAMES, TIERS, type Tier } from '../../shared/tiers.ts'
import {
  createJsonOption,
  createNoWaitOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
  type WaitOption,
} from '../options.ts'
import { printJson, printStderr } from '../output.ts'
import { addHints, getWaitHint } from '../refusals.ts'
import type { RunAction } from '../session.ts'
import { getProgress } from '../status-line.ts'
import { hasJob, waitForBox } from '../wait/wait-for-box.ts'

type Options = JsonOption & QuietOption & WaitOption

export function addResizeCommand(program: Command, runAction: RunAction): void {
  program
    .command('resize')
    .summary('change the tier of a box')
    .description(
      'Changes the tier of a box: its CPUs, memory and disk. A running box restarts: its files are kept, its processes are ' +
        'terminated. A suspended box stays suspended.',
    )
    .argument('<name>', "the box's name or id")
    .addArgument(new Argument('<tier>', `the new tier: ${TIER_NAMES.join(', ')}`))
    .addOption(createNoWaitOption())
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box resize fig pro
  box resize fig nano --no-wait && box wait fig`,
    )
    .action((name: string, tier: string, options: Options) =>
      runAction(async (session) => {
        const { client } = session
        const box = await client.findBox(name)
        const { hostname } = box
        const response = await addHints(
          client.request<{ box: Box }>('POST', `/boxes/${box.id}/resize`, { target_tier: tier }),
          {
            resize_rejected: getWaitHint(box),
          },
        )
        const resized = options.wait
          ? await waitForBox(session, response.box, getProgress(options), {
              subject: `The resize of ${hostname}`,
              isMet: (detail) =>
                detail.box.tier === tier &&
                detail.box.observedState !== 'resizing' &&
                !hasJob(detail, 'resize'),
            })
          : response.box
        if (options.json) printJson(resized)
        else if (!options.quiet)
          printStderr(
            options.wait
              ? `${hostname}: resized to ${describeTier(tier)}`
              : `${hostname}: resizing to ${tier}`,
          )
        return undefined
      }),
    )
}

/** A newer coordinator may have other tiers. */
function describeTier(tier: string): string {
  if (!Object.hasOwn(TIERS, tier)) return tier
  const { cpus, memoryBytes, diskGb } = TIERS[tier as Tier]
  return `${tier} (${cpus} CPU${cpus === 1 ? '' : 's'}, ${memoryBytes / 1024 ** 3} GiB memory, ${diskGb} GB disk)`
}
