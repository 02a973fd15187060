// Inserts the box of an enrolled machine, with the job that waits for its agent.
import type { Region, Tier } from '../../shared/tiers.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { findFirstOwnerId } from '../identity/lookups.ts'
import { machineProvider } from '../providers/enrolled/provider.ts'
import { newBoxRow } from './create.ts'
import { insertWithName } from './insert-with-name.ts'
import { enqueueEnrollJob } from './lifecycle/set-desired-state.ts'

export type NewMachine = {
  /** Who created the token. */
  actor: Actor
  name: string | undefined
  /** The name that is chosen if no name is requested, and it is free. */
  preferredName: string | null
  tier: Tier
  region: Region
  restricted: boolean
  /** Has the form of BoxRow.env_vars. */
  envVars: string
  agentTokenHash: string
  now: number
}

/** Throws name_taken. */
export async function insertMachine(
  trx: Trx,
  machine: NewMachine,
  random: () => number = Math.random,
): Promise<BoxRow> {
  const { actor, tier, region, restricted, now, name, preferredName } = machine
  const { workspaceId } = actor
  const ownerUserId = actor.userId ?? (await findFirstOwnerId(trx, workspaceId))
  if (!ownerUserId) throw new Error(`Workspace ${workspaceId} has no owner.`)
  const input = { tier, restricted }
  const row = await insertWithName(trx, { workspaceId, name, preferredName, random }, (hostname) => ({
    ...newBoxRow({
      input,
      source: null,
      environment: null,
      machine: { region, provider: machineProvider.name, image: null, imageDigest: null },
      host: null,
      actor,
      ownerUserId,
      hostname,
      now,
    }),
    kind: 'machine',
    observed_state: 'bootstrapping',
    env_vars: machine.envVars,
    agent_token_hash: machine.agentTokenHash,
  }))
  await enqueueEnrollJob(trx, row, { actor: formatActor(actor), now })
  return row
}
