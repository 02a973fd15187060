// box create: creates a box and waits until the box is running.
import type { Command } from 'commander'
import type { Box, CreateBoxRequest } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DEFAULT_TIER, REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
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

export function addCreateCommand(program: Command, runAction: RunAction): void {
  program
    .command('create')
    .summary('create a box')
    .description(
      'Creates a box and waits until the box is running. Prints the name on stdout and the state changes on stderr.',
    )
    .option('--name <name>', 'name of the box (default: a fruit name)')
    .option(
      '--tier <tier>',
      `size of the box: ${TIER_NAMES.join(', ')} (default: ${DEFAULT_TIER}); 'box show' lists the enforced limits`,
    )
    .option('--region <region>', `region of the box: ${REGIONS.join(', ')} (stored, has no effect yet)`)
    .option(
      '--env <K=V>',
      'set an environment variable for every command on the box; can be repeated',
      parseEnvOption,
    )
    .option(
      '--ttl <minutes>',
      'suspend the box after this time, 5 to 43200 (stored, not enforced yet)',
      createIntegerParser('--ttl', LIMITS.ttlMinutes),
    )
    .option(
      '--auto-pause <minutes>',
      'suspend the box after this idle time, 30 to 10080 (stored, not enforced yet)',
      createIntegerParser('--auto-pause', LIMITS.autoPauseMin),
    )
    .option('--restricted', 'declare the box safe for third parties (stored, not enforced yet)')
    .addOption(createNoWaitOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box create
  box create --name fig --env TOKEN=abc        sets TOKEN for every command on the box
  box create --env TOKEN                       copies the value from the local environment
  BOX=$(box create) && box exec $BOX -- make test`,
    )
    .action((options: Options) =>
      runAction(async (session) => {
        const body = toCreateRequest(options)
        const { box: createdBox } = await session.client.request<{ box: Box }>('POST', '/boxes', body)
        const box = options.wait
          ? await waitForState(session, createdBox, 'running', !options.json)
          : createdBox
        if (options.json) printJson(box)
        else print(box.hostname)
        if (!options.json && process.stdout.isTTY)
          printStderr(`Run a command on the box: box exec ${box.hostname} -- uname -a`)
        return undefined
      }),
    )
}

/** Does not validate tier and region: a newer coordinator may accept other values. */
function toCreateRequest(options: Options): CreateBoxRequest {
  const { name, tier, region, env, ttl, autoPause, restricted } = options
  return {
    ...(name !== undefined && { name }),
    ...(tier !== undefined && { tier: tier as NonNullable<CreateBoxRequest['tier']> }),
    ...(region !== undefined && { region: region as NonNullable<CreateBoxRequest['region']> }),
    ...(env !== undefined && { env }),
    ...(ttl !== undefined && { ttlMinutes: ttl }),
    ...(autoPause !== undefined && { autoPauseMin: autoPause }),
    ...(restricted && { restricted }),
  }
}
