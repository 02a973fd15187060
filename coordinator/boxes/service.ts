// The box operations (spec §4.3): access checks, list, create, wake, suspend and delete.

import type {
  Box,
  BoxDetail,
  BoxList,
  CreateBoxRequest,
  DesiredState,
  ListBoxesQuery,
  PatchBoxRequest,
  Vitals,
} from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isUuid } from '../../shared/ids.ts'
import { DEFAULT_TIER, type Tier } from '../../shared/tiers.ts'
import { type Admit, createAdmit } from '../admission/admit.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import { listBoxes } from '../box-store/box-lists.ts'
import { updateBox } from '../box-store/boxes.ts'
import { listBoxEvents } from '../box-store/events.ts'
import { findJob } from '../box-store/jobs.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { encodeCursor, parseCursor } from '../http/page-cursor.ts'
import { getVisibility } from '../http/visibility.ts'
import { enqueueStopInsteadOfFreeze } from '../lifecycle/enqueue-jobs.ts'
import { setDesiredState } from '../lifecycle/set-desired-state.ts'
import { updateSchedules } from '../lifecycle/update-schedules.ts'
import { createOperation, findLatestOperation, presentOperation } from '../operations/service.ts'
import { assertFits } from '../sources/file-rules.ts'
import { assertUsable, findCreateSource } from '../sources/sources.ts'
import { checkCreateSource, type RegionRules } from './create.ts'
import { describePatch } from './describe-change.ts'
import { createBoxFinder } from './find-box.ts'
import { type CreateEvent, createBoxInserter } from './insert-new-box.ts'
import { listChangedSchedules, toRowChanges } from './patch.ts'
import { presentBox, presentDetail } from './present.ts'
import { assertHasSchedules, assertManaged } from './refuse-machines.ts'

/** Runs in the transaction that requests the deletion of a box, before the desired state is written. */
export type DeletionHook = (trx: Trx, box: BoxRow, actor: string, now: number) => Promise<void>

export type BoxServiceOptions = {
  db: Db
  clock: Clock
  regions: RegionRules
  /** Schedules the box for the reconciler. Called after the commit that wrote its desired state or job. */
  schedule(boxId: string): void
  /** Called after the commit of a schedule that is due at this time, in milliseconds since the epoch. */
  onSchedule?(time: number): void
  /** Called after the commit of a change of the box's variables. */
  onEnvironmentChange?(boxId: string): void
  /** Whether the box's agent has a tunnel open. */
  isConnected(boxId: string): boolean
  /** The latest heartbeat in memory, which may be newer than the stored one. */
  latestHeartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
  /** Default: refuses the requests of closing workspaces. */
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
  list(actor: Actor, options?: { live?: boolean }): Promise<Box[]>
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
  /** Creates a box with the files of the snapshot. The caller has checked the snapshot, the tier and the admission. */
  createFromSnapshot(
    trx: Trx,
    actor: Actor,
    input: { name: string | undefined; tier: Tier },
    source: SnapshotRow,
    event: CreateEvent,
  ): Promise<Box>
}

export function createBoxService(options: BoxServiceOptions): BoxService {
  const { db, clock, regions, schedule, isConnected, latestHeartbeat, admit = createAdmit() } = options
  const { random, beforeDelete, onSchedule = () => undefined } = options
  const { onEnvironmentChange = () => undefined } = options
  const finder = createBoxFinder(db)
  const { find } = finder
  const insertNewBox = createBoxInserter({ clock, regions, schedule, random })

  const visibleTo = (actor: Actor) => ({
    visibility: getVisibility(actor),
    // Spec §4.3.
    withoutDeleted: actor.credential.type === 'ticket',
  })

  async function list(actor: Actor, { live = false } = {}): Promise<Box[]> {
    return (await listBoxes(db, { ...visibleTo(actor), live })).map(presentBox)
  }

  async function listPage(
    actor: Actor,
    { live, limit, before: cursor }: ListBoxesQuery & { limit: number },
  ): Promise<BoxList> {
    const before = cursor === undefined ? undefined : parseCursor(cursor, isUuid)
    const rows = await listBoxes(db, { ...visibleTo(actor), live: live === '1', before, limit: limit + 1 })
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    return {
      boxes: page.map(presentBox),
      nextBefore: rows.length > limit && last ? encodeCursor({ at: last.created_at, id: last.id }) : null,
    }
  }

  async function get(actor: Actor, id: string): Promise<BoxDetail> {
    const box = await find(actor, id)
    const [events, job] = await Promise.all([listBoxEvents(db, id), findJob(db, id)])
    return presentDetail({ box, events, job, connected: isConnected(id), heartbeat: latestHeartbeat(id) })
  }

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
      const source = await findCreateSource(trx, actor, input)
      if (source) assertUsable(source)
      const { tier = source?.tier ?? DEFAULT_TIER, autoPauseMin = null } = input
      assertFits(tier, source?.content_bytes ?? null)
      await admit(trx, actor, { action: 'create', tier, autoPauseMin })
      const event = source ? 'snapshot.restore' : 'box.create'
      return insertNewBox(trx, actor, { ...input, tier }, source, event)
    })
  }

  function patch(actor: Actor, id: string, input: PatchBoxRequest): Promise<Box> {
    return transaction(db, async (trx, onCommit) => {
      const row = await finder.lockLive(trx, actor, id)
      assertHasSchedules(row, input)
      const now = clock.now()
      const changes = toRowChanges(input, { box: row, actor, now })
      const { autoPauseMin } = input
      await admit(trx, actor, { action: 'patch', box: row, autoPauseMin })
      const written = await updateBox(trx, id, { ...changes, updated_at: now })
      await updateSchedules(trx, written, now, listChangedSchedules(input))
      const detail = describePatch(row, written)
      if (detail !== null) recordBoxChange(trx, 'box.update', written, { actor, now }, detail)
      const { pause_at: pauseAt } = written
      if (pauseAt !== null) onCommit(() => onSchedule(pauseAt))
      if (row.env_vars !== written.env_vars) onCommit(() => onEnvironmentChange(id))
      return presentBox(written)
    })
  }

  /**
   * Throws not_found for a box that is being deleted, which is still readable.
   * @returns `hasChanged`: false when the box has the desired state already
   */
  function changeDesiredState(
    trx: Trx,
    actor: Actor,
    id: string,
    state: DesiredState,
  ): Promise<{ row: BoxRow; hasChanged: boolean }> {
    return transaction(trx, async (trx, onCommit) => {
      const row = await finder.lockLive(trx, actor, id)
      if (row.observed_state === 'provision_failed') throw new ApiError('box_failed')
      if (state === 'suspended') assertManaged(row, 'suspend')
      // Do not schedule the box: that would interrupt the copying of its files.
      if (row.desired_state === state) return { row, hasChanged: false }
      onCommit(() => schedule(id))
      if (state === 'running') await admit(trx, actor, { action: 'wake', box: row })
      const change = { state, actor: formatActor(actor), now: clock.now() }
      return { row: await setDesiredState(trx, row, change), hasChanged: true }
    })
  }

  const wake = (actor: Actor, id: string, trx?: Trx) =>
    transaction(trx ?? db, async (trx) => {
      const { row, hasChanged } = await changeDesiredState(trx, actor, id, 'running')
      if (hasChanged) recordBoxChange(trx, 'box.wake', row, { actor, now: clock.now() })
      return presentBox(row)
    })

  const suspend = (actor: Actor, id: string, { stop } = { stop: false }) =>
    transaction(db, async (trx, onCommit) => {
      const { row, hasChanged } = await changeDesiredState(trx, actor, id, 'suspended')
      const now = clock.now()
      let isStopped = false
      if (stop) {
        onCommit(() => schedule(id))
        const current = await lockBox(trx, id)
        const request = { reason: 'stopped', actor: formatActor(actor), now }
        isStopped = current !== undefined && (await enqueueStopInsteadOfFreeze(trx, current, request))
      }
      if (hasChanged || isStopped) recordBoxChange(trx, 'box.suspend', row, { actor, now }, { stop })
      return presentBox(row)
    })

  function remove(actor: Actor, id: string, trx?: Trx) {
    return transaction(trx ?? db, async (trx, onCommit) => {
      const row = await finder.lock(trx, actor, id)
      const now = clock.now()
      const earlier = await findLatestOperation(trx, 'box_delete', id)
      if (row.desired_state === 'terminated' && earlier) {
        return { box: presentBox(row), operation: presentOperation(earlier) }
      }
      const { workspace_id: workspaceId } = row
      const operation = await createOperation(trx, { workspaceId, kind: 'box_delete', targetId: id, now })
      await beforeDelete?.(trx, row, formatActor(actor), now)
      const written = await setDesiredState(trx, row, {
        state: 'terminated',
        actor: formatActor(actor),
        now,
        operationId: operation.id,
      })
      if (row.desired_state !== 'terminated') recordBoxChange(trx, 'box.delete', row, { actor, now })
      onCommit(() => schedule(id))
      return { box: presentBox(written), operation: presentOperation(operation) }
    })
  }

  return {
    list,
    listPage,
    create,
    get,
    patch,
    wake,
    suspend,
    remove,
    createFromSnapshot: insertNewBox,
    ...finder,
  }
}
