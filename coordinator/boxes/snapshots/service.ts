// The requests on snapshots and templates, and forks (spec §4.3, §4.8): access checks, rules and writes.

import type { Box } from '../../../shared/api/boxes.ts'
import type { Operation } from '../../../shared/api/operations.ts'
import type {
  CreateSnapshotRequest,
  CreateTemplateRequest,
  ForkRequest,
  RestoreRequest,
  Snapshot,
} from '../../../shared/api/snapshots.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { formatCount } from '../../../shared/format-count.ts'
import type { Admit } from '../../admission/admit.ts'
import type { PlanLimits } from '../../admission/plan-limits.ts'
import { recordBoxChange, recordSnapshotChange } from '../../audit/record-change.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { type Actor, formatActor } from '../../http/actor.ts'
import { getVisibility } from '../../http/visibility.ts'
import { createOperation, findLatestOperation, presentOperation } from '../../jobs/operations/service.ts'
import type { Providers } from '../../providers/regions.ts'
import type { BoxSecrets } from '../box-hooks.ts'
import { listImageNames } from '../choose-machine.ts'
import { assertBoxAvailable, assertSnapshotAvailable } from '../refuse-unavailable.ts'
import type { BoxService } from '../service.ts'
import { enqueueDeletion, enqueueSnapshot, type NewSnapshot } from '../sources/enqueue.ts'
import { assertFits, assertHasFiles, estimateContentBytes } from '../sources/file-rules.ts'
import { assertUsable, requireSnapshot } from '../sources/sources.ts'
import { countLimitedSnapshots, findSnapshotJob, listSnapshots } from '../store/snapshots.ts'
import { presentSnapshot } from './present.ts'
import { createSnapshotName, TRANSIENT_LIFETIME_MS } from './rules.ts'
import { createTemplateNames, freeTemplateName, recordTemplate } from './template-names.ts'

export type SnapshotServiceOptions = {
  db: Db
  clock: Clock
  /** Of this coordinator. */
  host: string
  boxes: Pick<BoxService, 'lockLive' | 'createFromSnapshot'>
  boxSecrets: Pick<BoxSecrets, 'listCarried'>
  providers: Pick<Providers, 'byRegion'>
  admit: Admit
  /** Schedules the snapshot for the reconciler. Called after the commit that wrote its job. */
  schedule(snapshotId: string): void
  /** `snapshots`: those that are available or being created, without the copies that forks make. */
  loadPlanLimits(trx: Trx, workspaceId: string): Promise<Pick<PlanLimits, 'snapshots'>>
}

type ForkResult = { box: Box; snapshot: Snapshot }

/**
 * Every function throws not_found for an id that is unknown or malformed, and for a box or snapshot that the actor may not
 * see. Functions that write use `trx` when given.
 */
export type SnapshotService = {
  /** Newest first. */
  list(actor: Actor, options?: { includeTransient?: boolean }): Promise<Snapshot[]>
  create(actor: Actor, input: CreateSnapshotRequest, trx?: Trx): Promise<Snapshot>
  /** Idempotent: deleting again returns the operation of the first request. */
  remove(actor: Actor, id: string): Promise<{ snapshot: Snapshot; operation: Operation }>
  restore(actor: Actor, id: string, input: RestoreRequest, trx?: Trx): Promise<Box>
  fork(actor: Actor, boxId: string, input: ForkRequest, trx?: Trx): Promise<ForkResult>
  /** Takes a snapshot and gives it the name of a template. */
  createTemplate(actor: Actor, boxId: string, input: CreateTemplateRequest, trx?: Trx): Promise<Snapshot>
  /** `previous`: the snapshot that had the name. */
  nameTemplate(
    actor: Actor,
    id: string,
    name: string,
  ): Promise<{ snapshot: Snapshot; previous: Snapshot | null }>
  removeTemplateName(actor: Actor, id: string): Promise<Snapshot>
}

export function createSnapshotService(options: SnapshotServiceOptions): SnapshotService {
  const { db, clock, host, boxes, boxSecrets, providers, admit, schedule, loadPlanLimits } = options

  const listNames = ({ image, region }: Pick<BoxRow, 'image' | 'region'>): string[] =>
    listImageNames(image, providers.byRegion.get(region))

  async function list(actor: Actor, { includeTransient = false } = {}): Promise<Snapshot[]> {
    const rows = await listSnapshots(db, {
      visibility: getVisibility(actor),
      includeTransient,
    })
    return rows.map(presentSnapshot)
  }

  const assertBelowLimit = async (trx: Trx, { workspaceId }: Actor): Promise<void> =>
    checkLimit(await countLimitedSnapshots(trx, workspaceId), await loadPlanLimits(trx, workspaceId))

  /** Captures the files of the box after the commit. */
  async function take(
    trx: Trx,
    actor: Actor,
    boxId: string,
    action: 'snapshot' | 'template',
    input: Omit<NewSnapshot, 'actor' | 'now'>,
  ): Promise<Snapshot> {
    return transaction(trx, async (trx, onCommit) => {
      const box = await boxes.lockLive(trx, actor, boxId)
      assertHasFiles(box)
      await assertBoxAvailable(trx, box, host, 'no_volume')
      await admit(trx, actor, { action, box })
      await assertBelowLimit(trx, actor)
      const now = clock.now()
      const { templateName } = input
      const previous =
        templateName === undefined ? null : await freeTemplateName(trx, actor, templateName, now)
      const row = await enqueueSnapshot(trx, box, { ...input, actor: formatActor(actor), now }, boxSecrets)
      if (templateName === undefined)
        recordSnapshotChange(trx, 'snapshot.create', row, { actor, now }, { kind: row.kind })
      else recordTemplate(trx, row, previous, { actor, now })
      onCommit(() => schedule(row.id))
      return presentSnapshot(row)
    })
  }

  const create = (actor: Actor, { boxId, name, description }: CreateSnapshotRequest, trx?: Trx) =>
    transaction(trx ?? db, (trx) =>
      take(trx, actor, boxId, 'snapshot', { kind: 'manual', name, description }),
    )

  const createTemplate = (
    actor: Actor,
    boxId: string,
    { name, description }: CreateTemplateRequest,
    trx?: Trx,
  ) =>
    transaction(trx ?? db, (trx) =>
      take(trx, actor, boxId, 'template', { kind: 'template', name, templateName: name, description }),
    )

  function fork(actor: Actor, boxId: string, input: ForkRequest, trx?: Trx): Promise<ForkResult> {
    return transaction(trx ?? db, async (trx, onCommit) => {
      const box = await boxes.lockLive(trx, actor, boxId)
      assertHasFiles(box)
      await assertBoxAvailable(trx, box, host, 'no_volume')
      const { name, tier = box.tier, environment, keepSnapshot = false } = input
      assertFits(tier, estimateContentBytes(box))
      const request = { action: 'fork', box, tier, imageNames: listNames(box) } as const
      const { defaultAutoPauseMin: autoPauseMin } = await admit(trx, actor, request)
      if (keepSnapshot) await assertBelowLimit(trx, actor)
      const now = clock.now()
      const copy: NewSnapshot = {
        name: createSnapshotName(box.hostname, 'fork', now),
        kind: 'fork',
        transient: !keepSnapshot,
        expiresAt: keepSnapshot ? null : now + TRANSIENT_LIFETIME_MS,
        actor: formatActor(actor),
        now,
      }
      const snapshot = await enqueueSnapshot(trx, box, copy, boxSecrets)
      if (keepSnapshot)
        recordSnapshotChange(trx, 'snapshot.create', snapshot, { actor, now }, { kind: 'fork' })
      const kind = 'box.create'
      const settings = { name, tier, environment, autoPauseMin }
      const created = await boxes.createFromSnapshot(trx, actor, settings, snapshot, kind)
      const fork = { newBoxId: created.id, newName: created.hostname, snapshotId: snapshot.id, keepSnapshot }
      recordBoxChange(trx, 'box.fork', box, { actor, now }, fork)
      onCommit(() => schedule(snapshot.id))
      return { box: created, snapshot: presentSnapshot(snapshot) }
    })
  }

  function restore(actor: Actor, id: string, input: RestoreRequest, trx?: Trx): Promise<Box> {
    const { name, tier, environment } = input
    return transaction(trx ?? db, async (trx) => {
      const admitRestore = await admit.begin(trx, actor, 'restore')
      const snapshot = await requireSnapshot(trx, actor, id)
      assertUsable(snapshot)
      await assertSnapshotAvailable(trx, snapshot, host)
      const chosenTier = tier ?? snapshot.tier
      assertFits(chosenTier, snapshot.content_bytes)
      const imageNames = listNames(snapshot)
      const { defaultAutoPauseMin } = await admitRestore({
        action: 'restore',
        tier: chosenTier,
        imageNames,
      })
      const settings = { name, tier: chosenTier, environment, autoPauseMin: defaultAutoPauseMin }
      return boxes.createFromSnapshot(trx, actor, settings, snapshot, 'snapshot.restore')
    })
  }

  function remove(actor: Actor, id: string) {
    return transaction(db, async (trx, onCommit) => {
      const row = await requireSnapshot(trx, actor, id)
      const earlier = row.status === 'deleting' && (await findLatestOperation(trx, 'snapshot_delete', id))
      if (earlier) return { snapshot: presentSnapshot(row), operation: presentOperation(earlier) }
      const now = clock.now()
      const { workspace_id: workspaceId } = row
      const operation = await createOperation(trx, {
        workspaceId,
        kind: 'snapshot_delete',
        targetId: id,
        now,
      })
      const deletion = { actor: formatActor(actor), now, operationId: operation.id }
      const written = await enqueueDeletion(trx, row, deletion)
      if (row.status !== 'deleting') recordSnapshotChange(trx, 'snapshot.delete', row, { actor, now })
      // Does not interrupt a capture that a fork needs.
      if ((await findSnapshotJob(trx, id))?.op === 'delete') onCommit(() => schedule(id))
      return { snapshot: presentSnapshot(written), operation: presentOperation(operation) }
    })
  }

  return { list, create, remove, restore, fork, createTemplate, ...createTemplateNames({ db, clock }) }
}

function checkLimit(count: number, { snapshots: limit }: Pick<PlanLimits, 'snapshots'>): void {
  if (count < limit) return
  throw new ApiError(
    'snapshot_limit',
    `The workspace has reached its limit of ${formatCount(limit, 'snapshot')}. Delete a snapshot first.`,
    { fields: { limit } },
  )
}
