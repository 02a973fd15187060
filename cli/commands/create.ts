// box create: makes a box and waits until it runs.
import type { Command } from 'commander'
import type { Box, CreateBox } from '../../shared/api/boxes.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import {
  type JsonOption,
  jsonOption,
  noWaitOption,
  variable,
  type WaitOption,
  wholeNumber,
} from '../options.ts'
import { print, printJson, say } from '../output.ts'
import type { Run } from '../session.ts'
import { waitForState } from '../wait.ts'

type Options = JsonOption &
  WaitOption & {
    name?: string
    tier?: string
    region?: string
    env?: Record<string, string>
    ttl?: number
    autoPause?: number
    restricted?: boolean
  }

export function addCreate(program: Command, run: Run): void {
  program
    .command('create')
    .summary('make a box')
    .description('Makes a box and waits until it runs. Prints its name on stdout, what happens on stderr.')
    .option('--name <name>', 'its name; a fruit is chosen when absent')
    .option('--tier <tier>', `its size: ${TIER_NAMES.join(', ')}`)
    .option('--region <region>', `where: ${REGIONS.join(', ')}`)
    .option('--env <K=V>', 'a variable for its commands; may be repeated', variable)
    .option('--ttl <minutes>', 'suspend it after this time, 5 to 43200', wholeNumber)
    .option('--auto-pause <minutes>', 'suspend it when idle for this long, 30 to 10080', wholeNumber)
    .option('--restricted', 'make it safe for third parties')
    .addOption(noWaitOption())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box create                                   a box with a name of the coordinator's choice
  box create --name fig --env TOKEN=abc        its commands find TOKEN in their environment
  box create --env TOKEN                       the same, with the value it has here
  BOX=$(box create --ttl 60) && box exec $BOX -- make test`,
    )
    .action((options: Options) =>
      run(async (session) => {
        const { box } = await session.client.control<{ box: Box }>('POST', '/boxes', requestOf(options))
        const talk = !options.json
        const made = options.wait ? await waitForState(session, box, 'running', talk) : box
        if (options.json) printJson(made)
        else print(made.hostname)
        if (talk && process.stdout.isTTY) say(`Run something on it: box exec ${made.hostname} -- uname -a`)
        return undefined
      }),
    )
}

/** Tier and region go as they are: the coordinator says what they may be. */
function requestOf(options: Options): CreateBox {
  const { name, tier, region, env, ttl, autoPause, restricted } = options
  return {
    ...(name !== undefined && { name }),
    ...(tier !== undefined && { tier: tier as NonNullable<CreateBox['tier']> }),
    ...(region !== undefined && { region: region as NonNullable<CreateBox['region']> }),
    ...(env !== undefined && { env }),
    ...(ttl !== undefined && { ttlMinutes: ttl }),
    ...(autoPause !== undefined && { autoPauseMin: autoPause }),
    ...(restricted && { restricted }),
  }
}
