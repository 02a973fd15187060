// Creates a box: the options of box create and box run, and the request.
import { type Command, Option } from 'commander'
import type { Box, CreateBoxRequest } from '../shared/api/boxes.ts'
import { LIMITS } from '../shared/limits.ts'
import { DEFAULT_TIER, REGIONS, TIER_NAMES } from '../shared/tiers.ts'
import type { Client } from './client.ts'
import { CliError, EXIT } from './exit-codes.ts'
import { createIntegerParser, parseEnvOption } from './options.ts'
import { printMessage } from './output.ts'

export type CreateOptions = {
  name?: string
  tier?: string
  region?: string
  env?: Record<string, string>
  ttl?: number
  autoPause?: number
  restricted?: boolean
}

/** -t is not short for --tier: in box run, as in box exec, -t is short for --tty. */
export const addCreateOptions = (command: Command): Command =>
  command
    .option(
      '--tier <tier>',
      `size of the box: ${TIER_NAMES.join(', ')} (default: ${DEFAULT_TIER}); box show lists the enforced limits`,
    )
    .option('--region <region>', `region of the box: ${REGIONS.join(', ')} (stored, has no effect yet)`)
    .option(
      '-e, --env <name=value>',
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
    .addOption(new Option('--restricted').hideHelp())

/** Sends the request; the box is not running yet. @throws CliError */
export async function createBox(client: Client, options: CreateOptions): Promise<Box> {
  const { box } = await client.request<{ box: Box }>('POST', '/boxes', toCreateRequest(options))
  return box
}

/** Does not validate name, tier and region: a newer coordinator may accept other values. */
function toCreateRequest(options: CreateOptions): CreateBoxRequest {
  const { name, tier, region, env, ttl, autoPause, restricted } = options
  // The API stores the setting. Nothing protects third parties from such a box yet.
  if (restricted)
    throw new CliError(
      EXIT.usage,
      '--restricted is not available yet, because nothing enforces it. Create the box without --restricted.',
    )
  return {
    ...(name !== undefined && { name }),
    ...(tier !== undefined && { tier: tier as NonNullable<CreateBoxRequest['tier']> }),
    ...(region !== undefined && { region: region as NonNullable<CreateBoxRequest['region']> }),
    ...(env !== undefined && { env }),
    ...(ttl !== undefined && { ttlMinutes: ttl }),
    ...(autoPause !== undefined && { autoPauseMin: autoPause }),
  }
}

/** Prints one note if the box has settings that the coordinator stores but does not enforce. */
export function printUnenforcedOptions({ ttl, autoPause, region }: CreateOptions): void {
  const options = [
    ...(ttl === undefined ? [] : ['--ttl']),
    ...(autoPause === undefined ? [] : ['--auto-pause']),
    ...(region === undefined ? [] : ['--region']),
  ]
  if (options.length === 0) return
  const list = new Intl.ListFormat('en-GB').format(options)
  printMessage(`note: ${list} ${options.length === 1 ? 'is' : 'are'} stored, but not enforced yet.`)
}
