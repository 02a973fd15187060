// The box operations (spec §4.3): creates and patches boxes, and combines the other operations.

import type {
  Box,
  BoxDetail,
  BoxList,
  CreateBoxRequest,
  ListBoxesQuery,
  PatchBoxRequest,
  Vitals,
} from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Capacity, Tier } from '../../shared/tiers.ts'
import { type Admit, createAdmit } from '../admission/admit.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { recordDueTime } from '../jobs/due-times.ts'
import type { WarmMachines } from '../warm-machines/pool.ts'
import type { BoxEnvironments, BoxSecrets } from './box-hooks.ts'
import { createStateChanges, type DeletionHook } from './change-state.ts'
import { listImageNames, type RegionRules } from './choose-machine.ts'
import { checkCreateSource } from './create.ts'
import { describePatch } from './describe-change.ts'
import { type CreateEvent, createBoxInserter } from './insert-new-box.ts'
import { updateSchedules } from './lifecycle/update-schedules.ts'
import { listChangedSchedules, toRowChanges } from './patch.ts'
import { presentBox } from './present.ts'
import { type BoxListOptions, createBoxReader } from './read-boxes.ts'
import { assertHasSchedules } from './refuse-machines.ts'
import { assertSnapshotAvailable } from './refuse-unavailable.ts'
import { renameBox } from './rename.ts'
import { assertFits } from './sources/file-rules.ts'
import { assertUsable, findCreateSource } from './sources/sources.ts'
import { countLiveBoxes } from './store/box-lists.ts'
import { updateBox } from './store/boxes.ts'
import { recordVariableChange } from './variable-changes.ts'

export type BoxServiceOptions = {
  db: Db
  finder: BoxFinder
  clock: Clock
  /** See BoxInserterOptions. */
  host: string
  regions: RegionRules
  boxEnvironments: BoxEnvironments
  boxSecrets: BoxSecrets
  /** Default: the machine of each box is started for it. */
  warmMachines?: WarmMachines
  /** Schedules the box for the reconciler. Called after the commit that wrote its desired state or job. */
  schedule(boxId: string): void
  /** Whether the box's agent has a tunnel open. */
  isConnected(boxId: string): boolean
  /** The latest heartbeat in memory, which may be newer than the stored one. */
  latestHeartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
  /** The machine on which all managed boxes of the region of this box run. Default: each box has a machine of its own. */
  getCapacity?(box: Pick<BoxRow, 'region' | 'host'>): Capacity | undefined
  /** Default: billing is off. */
  admit?: Admit
  beforeDelete?: DeletionHook
  /** 0 or more, less than 1. Selects the fruit that names a box created without a name. Default: Math.random. */
  random?: () => number
}

/**
 * Every function throws not_found for an id that is unknown or malformed, and for a box that the actor may not see.
 * Functions that write use `trx` when given. The reconciler is scheduled after its commit.
 */
export type BoxService = BoxFinder & {
  /** Newest first. */
  list(actor: Actor, options?: BoxListOptions): Promise<Box[]>
  /** The boxes of list(), for a response (http/json-pages.ts). */
  listPages(actor: Actor, options?: BoxListOptions): AsyncIterable<Box[]>
  /** One page, newest first. Throws bad_request for an invalid `before`. */
  listPage(actor: Actor, query: ListBoxesQuery & { limit: number }): Promise<BoxList>
  create(actor: Actor, input: CreateBoxRequest, trx?: Trx): Promise<Box>
  get(actor: Actor, id: string): Promise<BoxDetail>
  /** Changes the settings of a box, or its environment variables. Throws like toRowChanges. */
  patch(actor: Actor, id: string, input: PatchBoxRequest): Promise<Box>
  wake(actor: Actor, id: string, trx?: Trx): Promise<Box>
  /** @param options.stop terminates the processes, also of a frozen box */
  suspend(actor: Actor, id: string, options?: { stop: boolean }): Promise<Box>
  /** Idempotent: deleting again returns the operation of the first delete. */
  remove(actor: Actor, id: string, trx?: Trx): Promise<{ box: Box; operation: Operation }>
  /** Requests the deletion of a box, which the caller has locked. No-op when it is being deleted. */
  removeBySystem(trx: Trx, box: BoxRow, by: { now: number; reason: string }): Promise<void>
  /** Creates a box with the files of the snapshot. The caller has checked the snapshot, the tier and the admission. */
  createFromSnapshot(
    trx: Trx,
    actor: Actor,
    input: Pick<CreateBoxRequest, 'name' | 'environment' | 'autoPauseMin'> & { tier: Tier },
    source: SnapshotRow,
    event: CreateEvent,
  ): Promise<Box>
}

export function createBoxService(options: BoxServiceOptions): BoxService {
  const {
    db,
    finder,
    clock,
    host,
    regions,
    boxEnvironments,
    boxSecrets,
    warmMachines = { take: async () => null },
    schedule,
    isConnected,
    latestHeartbeat,
    admit = createAdmit({ clock: options.clock, countLiveBoxes }),
  } = options
  const { random, beforeDelete } = options
  const { getCapacity = () => undefined } = options
  const { planNewBox, insertNewBox } = createBoxInserter({
    clock,
    host,
    regions,
    boxEnvironments,
    boxSecrets,
    warmMachines,
    schedule,
    random,
  })

  async function create(actor: Actor, input: CreateBoxRequest, trx?: Trx): Promise<Box> {
    if (actor.boxIds) {
      throw new ApiError(
        'key_access_denied',
        'This API key is limited to some boxes and cannot create boxes. Use an API key without this limit.',
        { fields: { scope: 'boxes' } },
      )
    }
    checkCreateSource(input)
    return transaction(trx ?? db, async (trx) => {
      const admitCreate = await admit.begin(trx, actor, 'create')
      const source = await findCreateSource(trx, actor, input)
      if (source) {
        assertUsable(source)
        await assertSnapshotAvailable(trx, source, host)
      }
      const { tier = source?.tier, autoPauseMin, restricted } = input
      if (tier !== undefined) assertFits(tier, source?.content_bytes ?? null)
      const plan = await planNewBox(trx, actor, input, source)
      const { image, region } = plan.machine
      const imageNames = listImageNames(image, regions.inRegion(region))
      const { defaultAutoPauseMin, defaultTier } = await admitCreate({
        action: 'create',
        tier,
        autoPauseMin,
        restricted,
        imageNames,
      })
      const admitted = {
        ...input,
        tier: tier ?? defaultTier,
        autoPauseMin: autoPauseMin === undefined ? defaultAutoPauseMin : autoPauseMin,
      }
      const event = source ? 'snapshot.restore' : 'box.create'
      return insertNewBox(trx, actor, admitted, source, plan, event)
    })
  }

  function patch(actor: Actor, id: string, input: PatchBoxRequest): Promise<Box> {
    return transaction(db, async (trx) => {
      const row = await finder.lockLive(trx, actor, id)
      assertHasSchedules(row, input)
      const now = clock.now()
      const changes = toRowChanges(input, { box: row, actor, now })
      const { autoPauseMin } = input
      await admit(trx, actor, { action: 'patch', box: row, autoPauseMin })
      const { hostname = row.hostname, ...settings } = changes
      await renameBox(trx, row, hostname, { actor: formatActor(actor), now })
      const written = await updateBox(trx, id, { ...settings, updated_at: now })
      await updateSchedules(trx, written, now, listChangedSchedules(input))
      const detail = describePatch(row, written)
      if (detail !== null) recordBoxChange(trx, 'box.update', written, { actor, now }, detail)
      const { pause_at: pauseAt, delete_at: deleteAt } = written
      if (pauseAt !== null) recordDueTime(trx, pauseAt)
      if (deleteAt !== null) recordDueTime(trx, deleteAt)
      if (row.env_vars !== written.env_vars) recordVariableChange(trx, id)
      return presentBox(written)
    })
  }

  return {
    ...createBoxReader({ db, boxEnvironments, finder, isConnected, latestHeartbeat, getCapacity }),
    ...createStateChanges({ db, clock, finder, admit, schedule, beforeDelete }),
    ...finder,
    create,
    patch,
    async createFromSnapshot(trx, actor, input, source, event) {
      const plan = await planNewBox(trx, actor, input, source)
      return insertNewBox(trx, actor, input, source, plan, event)
    },
  }
}
