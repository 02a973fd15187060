// Inserts a new box with its create job and its audit event.
import type { Box, CreateBoxRequest } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Tier } from '../../shared/tiers.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { findFirstOwnerId } from '../identity/lookups.ts'
import type { WarmMachines } from '../warm-machines/pool.ts'
import type { BoxEnvironments, BoxSecrets, CarriedMount, PinnedEnvironment } from './box-hooks.ts'
import { chooseMachine, type MachineChoice, type RegionRules } from './choose-machine.ts'
import { newBoxRow } from './create.ts'
import { describeNewBox } from './describe-change.ts'
import { insertWithName } from './insert-with-name.ts'
import { enqueueCreateJob } from './lifecycle/set-desired-state.ts'
import { presentBox } from './present.ts'
import { updateBox } from './store/boxes.ts'

export type BoxInserterOptions = {
  clock: Clock
  /** Of this coordinator: it has the files of the new boxes. */
  host: string
  regions: RegionRules
  boxEnvironments: BoxEnvironments
  boxSecrets: BoxSecrets
  warmMachines: WarmMachines
  schedule(boxId: string): void
  /** See BoxServiceOptions. */
  random: (() => number) | undefined
}

/** The kind of the audit event. A fork records `box.create`: it copies a box, and the client does not restore a snapshot. */
export type CreateEvent = 'box.create' | 'snapshot.restore'

export type NewBoxInput = Omit<CreateBoxRequest, 'name'> & { name?: string | undefined; tier: Tier }

/** What a new box will have apart from what the request names. */
export type NewBoxPlan = { environment: PinnedEnvironment | null; machine: MachineChoice }

export function createBoxInserter(options: BoxInserterOptions) {
  const {
    clock,
    host: ownHost,
    regions,
    boxEnvironments,
    boxSecrets,
    warmMachines,
    schedule,
    random = Math.random,
  } = options

  /** Locks the environment, and writes nothing. Throws not_found for an environment, and like chooseMachine(). */
  async function planNewBox(
    trx: Trx,
    actor: Actor,
    input: Omit<NewBoxInput, 'tier'>,
    source: SnapshotRow | null,
  ): Promise<NewBoxPlan> {
    const environment = await boxEnvironments.choose(trx, actor, { environment: input.environment, source })
    const environmentImage = environment?.image ?? null
    return { environment, machine: chooseMachine({ input, environmentImage, source }, regions) }
  }

  function insertNewBox(
    trx: Trx,
    actor: Actor,
    input: NewBoxInput,
    source: SnapshotRow | null,
    { environment, machine }: NewBoxPlan,
    event: CreateEvent,
  ): Promise<Box> {
    return transaction(trx, async (trx, onCommit) => {
      const ownerUserId = actor.userId ?? (await findFirstOwnerId(trx, actor.workspaceId))
      if (!ownerUserId) throw new Error(`Workspace ${actor.workspaceId} has no owner.`)
      const now = clock.now()
      const { workspaceId } = actor
      const copiedFiles = source ? await boxEnvironments.listFilePaths(trx, source) : []
      // The files of a snapshot stay on their host.
      const host = source?.host ?? ownHost
      const id = host === ownHost ? await warmMachines.take(trx, machine) : null
      const box = { id, input, source, environment, copiedFiles, machine, host, actor, ownerUserId, now }
      const inserted = await insertWithName(trx, { workspaceId, name: input.name, random }, (hostname) =>
        newBoxRow({ ...box, hostname }),
      )
      const row = await mountSecrets(trx, actor, inserted, { source, environment })
      await boxEnvironments.onCreate(trx, row)
      await enqueueCreateJob(trx, row, { actor: formatActor(actor), now })
      recordBoxChange(trx, event, row, { actor, now }, describeNewBox(row, source))
      onCommit(() => schedule(row.id))
      return presentBox(row)
    })
  }

  return { planNewBox, insertNewBox }

  async function mountSecrets(
    trx: Trx,
    actor: Actor,
    row: BoxRow,
    { source, environment }: { source: SnapshotRow | null; environment: PinnedEnvironment | null },
  ): Promise<BoxRow> {
    const carried = source ? (JSON.parse(source.mounts) as CarriedMount[]) : []
    const toggles = environment?.toggles ?? null
    const mountVars = await boxSecrets.onCreate(trx, row, { actor, carried, toggles })
    return mountVars === row.mount_vars ? row : updateBox(trx, row.id, { mount_vars: mountVars })
  }
}
