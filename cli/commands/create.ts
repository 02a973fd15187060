// box create: creates a box and waits until it runs.
import type { Command } from 'commander'
import type { Box, CreateBox } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import {
  createIntegerParser,
  createJsonOption,
  createNoWaitOption,
  type JsonOption,
  parseEnvOption,
  type WaitOption,
} from '../options.ts'
import { print, printJson, printStderr } from '../output.ts'
import type { RunAction } from '../session.ts'
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

export function addCreate(program: Command, runAction: RunAction): void {
  program
    .command('create')
    .summary('create a box')
    .description(
      'Creates a box and waits until it runs. Prints its name on stdout and its progress on stderr.',
    )
    .option('--name <name>', 'its name (default: the name of a fruit)')
    .option('--tier <tier>', `its size: ${TIER_NAMES.join(', ')}; 'box show' lists the limits enforced`)
    .option('--region <region>', `stored, has no effect yet: ${REGIONS.join(', ')}`)
    .option('--env <K=V>', 'set an environment variable for its commands; can be repeated', parseEnvOption)
    .option(
      '--ttl <minutes>',
      'suspend it after this time, 5 to 43200 (stored, not enforced yet)',
      createIntegerParser('--ttl', LIMITS.ttlMinutes),
    )
    .option(
      '--auto-pause <minutes>',
      'suspend it after this idle time, 30 to 10080 (stored, not enforced yet)',
      createIntegerParser('--auto-pause', LIMITS.autoPauseMin),
    )
    .option('--restricted', 'mark it as intended for third parties (stored, not enforced yet)')
    .addOption(createNoWaitOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box create
  box create --name fig --env TOKEN=abc        sets TOKEN for its commands
  box create --env TOKEN                       passes on TOKEN from this environment
  BOX=$(box create) && box exec $BOX -- make test`,
    )
    .action((options: Options) =>
      runAction(async (session) => {
        const body = toCreateRequest(options)
        const { box: requested } = await session.client.request<{ box: Box }>('POST', '/boxes', body)
        const box = options.wait
          ? await waitForState(session, requested, 'running', !options.json)
          : requested
        if (options.json) printJson(box)
        else print(box.hostname)
        if (!options.json && process.stdout.isTTY)
          printStderr(`Run a command on it: box exec ${box.hostname} -- uname -a`)
        return undefined
      }),
    )
}

/** Tier and region are not checked here: the coordinator may know more of them. */
function toCreateRequest(options: Options): CreateBox {
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
