// Creates a box: the options of box create and box run, and the request.
import type { Command } from 'commander'
import type { Box, CreateBoxRequest } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DEFAULT_REGION, REGIONS } from '../../shared/tiers.ts'
import { createDurationParser, parseEnvOption } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import { addHints, IMAGE_HINTS, TIER_TOO_SMALL_HINTS } from '../connection/refusals.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { findSnapshot } from '../snapshots/find-snapshot.ts'
import { parseNewLabel } from './labels.ts'
import { addEnvironmentOption, addTierOption, explainEnvironment, toEnvironmentField } from './new-box.ts'

export type CreateOptions = {
  name?: string
  tier?: string
  environment?: string
  from?: string
  image?: string
  region?: string
  env?: Record<string, string>
  ttl?: number
  deleteAfter?: number
  autoPause?: number
  label?: Record<string, string>
  restricted?: boolean
}

/** -t is not short for --tier: in box run, as in box exec, -t is short for --tty. */
export const addCreateOptions = (command: Command): Command =>
  addEnvironmentOption(addTierOption(command), 'that of the snapshot, else of the workspace')
    .option(
      '--from <template|snapshot>',
      'create the box with the files, the variables and the tier of a template or snapshot, in its region',
    )
    .option(
      '--image <image>',
      'give the box this root file system, in which its user is root, such as debian:12; a missing image is downloaded. Needs a region ' +
        'with images (box regions); default: that of the environment, else of the region',
    )
    .option(
      '--region <region>',
      `region of the box: ${REGIONS.join(', ')} (default: ${DEFAULT_REGION}, or with --image the first one with images)`,
    )
    .option(
      '-e, --env <name=value>',
      'set an environment variable for every command on the box; can be repeated',
      parseEnvOption,
    )
    .option(
      '--ttl <duration>',
      'suspend the box after this time: 5m to 30d, such as 90m, 2h or 1d; a number alone is minutes',
      createDurationParser('--ttl', 'minutes', LIMITS.ttlMinutes),
    )
    .option(
      '--delete-after <duration>',
      'delete the box with its files after this time: 5m to 365d; a number alone is minutes',
      createDurationParser('--delete-after', 'minutes', LIMITS.deleteAfterMinutes),
    )
    .option(
      '--auto-pause <duration>',
      'suspend the box when it was idle for this time: 30m to 7d; a number alone is minutes',
      createDurationParser('--auto-pause', 'minutes', LIMITS.autoPauseMin),
    )
    .option(
      '--label <key=value>',
      'set a label, by which other commands select the box; can be repeated',
      parseNewLabel,
    )
    .option(
      '--restricted',
      'for third parties: the box gets no secrets, no secret files, no cloud tokens and no links for others, and stays so',
    )

/** Sends the request; the box is not running yet. @throws CliError */
export async function createBox(client: Client, options: CreateOptions): Promise<Box> {
  const request = { ...toCreateRequest(options), ...(await findSource(client, options)) }
  const response = client.request<{ box: Box }>('POST', '/boxes', request)
  const hints = { ...TIER_TOO_SMALL_HINTS, ...IMAGE_HINTS }
  return (await addHints(explainEnvironment(client, response, options), hints)).box
}

/** --from: the snapshot, by its id, its template name or its name. */
async function findSource(client: Client, { from, image, region }: CreateOptions): Promise<CreateBoxRequest> {
  if (from === undefined) return {}
  if (image !== undefined)
    throw new CliError(
      EXIT.usage,
      '--image cannot be combined with --from: the box gets the image of the snapshot.',
    )
  if (region !== undefined)
    throw new CliError(
      EXIT.usage,
      '--region cannot be combined with --from: the box starts in the region of the snapshot.',
    )
  return { fromSnapshotId: (await findSnapshot(client, from)).id }
}

/** Does not validate name, tier and region: a newer coordinator may accept other values. */
function toCreateRequest(options: CreateOptions): CreateBoxRequest {
  const { name, tier, image, region, env, ttl, deleteAfter, autoPause, label, restricted } = options
  return {
    ...(name !== undefined && { name }),
    ...(tier !== undefined && { tier: tier as NonNullable<CreateBoxRequest['tier']> }),
    ...(image !== undefined && { image }),
    ...(region !== undefined && { region: region as NonNullable<CreateBoxRequest['region']> }),
    ...(env !== undefined && { env }),
    ...toEnvironmentField(options),
    ...(label !== undefined && { labels: label }),
    ...(restricted && { restricted }),
    ...(ttl !== undefined && { ttlMinutes: ttl }),
    ...(deleteAfter !== undefined && { deleteAfterMinutes: deleteAfter }),
    ...(autoPause !== undefined && { autoPauseMin: autoPause }),
  }
}
