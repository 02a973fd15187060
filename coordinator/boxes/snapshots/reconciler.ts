// Runs the jobs of snapshots: captures the files of boxes, and removes the files of deleted snapshots.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { createFairQueue } from '../../base/fair-queue.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { RetryDelays } from '../../jobs/failures.ts'
import { createJobRunner } from '../../jobs/job-runner.ts'
import { createLeases } from '../../jobs/leases.ts'
import { classifyFailure } from '../../providers/classify-failure.ts'
import type { ArchiveInfo, ArchiveKey, Provider } from '../../providers/provider.ts'
import type { Providers } from '../../providers/regions.ts'
import type { Replica } from '../../replicas/replica.ts'
import { subscribeToSnapshotJobs } from '../job-changes.ts'
import { listWaitingBoxIds } from '../store/box-lists.ts'
import { listBoxIdsBySource } from '../store/boxes.ts'
import {
  claimSnapshotJob,
  completeCapture,
  completeRemoval,
  failSnapshotJob,
  isFinalAttempt,
  recordCopy,
  type SnapshotClaim,
  setSnapshotRegion,
} from './jobs.ts'

export type SnapshotReconcilerOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  replica: Pick<Replica, 'id' | 'host' | 'isLeaseValid' | 'events'>
  providers: Pick<Providers, 'for' | 'inRegion' | 'byRegion'>
  /** Schedules a box that may wait for a snapshot. */
  scheduleBox(boxId: string): void
  /** See RetryDelays. */
  backoff?: (failures: number) => number
}

export type SnapshotReconciler = {
  /** Continues unfinished jobs. */
  start(): Promise<void>
  /** Runs the job of the snapshot. A running capture is aborted and planned again. */
  schedule(snapshotId: string): void
  /** Runs the jobs that waited for a box. */
  runDue(): void
  /** Resolves when the running jobs have been interrupted. They continue at the next start. */
  close(): Promise<void>
}

const MAX_ERROR_LENGTH = 500
const MAX_CONCURRENT_CAPTURES = 4

export function createSnapshotReconciler(options: SnapshotReconcilerOptions): SnapshotReconciler {
  const { db, clock, log, replica, providers, scheduleBox } = options
  const { id: owner, host } = replica
  const retryDelays = new RetryDelays(options.backoff)
  const captures = createFairQueue(MAX_CONCURRENT_CAPTURES)
  const leases = createLeases(db, 'snapshot_jobs', replica)
  const runner = createJobRunner({
    clock,
    log,
    replica,
    target: 'snapshot',
    run,
    listDueIds: leases.listDueIds,
    findNextDueTime: leases.findNextDueTime,
  })

  async function run(id: string, nextStep: () => AbortController | undefined): Promise<number | undefined> {
    for (let controller = nextStep(); controller; controller = nextStep()) {
      const result = await claimSnapshotJob(db, id, { owner, host, now: clock.now() })
      if (result === 'settled' || result === 'leased' || result === 'elsewhere') return undefined
      if (typeof result === 'object' && 'dueAt' in result) return result.dueAt
      // The claim may have waited for the database until after the lease was lost.
      if (!replica.isLeaseValid) break
      if (result !== 'changed') await runClaim(result.claim, controller)
      // A new automatic snapshot replaces older ones.
      runner.runDue()
      await scheduleWaitingBoxes(id)
    }
    await leases.release(id)
    return undefined
  }

  async function runClaim(claim: SnapshotClaim, controller: AbortController): Promise<void> {
    const { snapshot, job } = claim
    const { signal } = controller
    try {
      if (job.op === 'create') {
        const info = await captures.run(snapshot.workspace_id, () => capture(claim, signal))
        retryDelays.reset(snapshot.id)
        await completeCapture(db, claim, info, { owner, host, now: clock.now() })
        log.info({ snapshotId: snapshot.id, boxId: snapshot.box_id, ...info }, 'snapshot created')
      } else {
        await removeArchive(snapshot)
        retryDelays.reset(snapshot.id)
        await completeRemoval(db, claim, { owner, host, now: clock.now() })
        log.info({ snapshotId: snapshot.id }, 'snapshot removed')
      }
    } catch (error) {
      if (signal.aborted) return
      await handleFailure(claim, error)
    }
  }

  async function capture(claim: SnapshotClaim, signal: AbortSignal) {
    const { snapshot } = claim
    signal.throwIfAborted()
    if (claim.box === null) throw new Error('The capture of a snapshot was claimed without its box.')
    const box = await findMachine(claim.box, providers)
    // The provider has copied the files, which boxes may have been created from.
    const isCopied = snapshot.content_bytes !== null
    if (!isCopied && box.region !== snapshot.region) {
      // The box has been moved. An earlier attempt may have captured its files in the previous region.
      await removeArchive(snapshot)
      await setSnapshotRegion(db, { ...claim, box }, clock.now())
    }
    const provider = isCopied ? providers.inRegion(snapshot.region) : providers.for(box)
    const archive = isCopied ? null : await findArchive(provider, box)
    const info =
      archive === null
        ? await captureMachine(provider, box.id, claim, signal)
        : await copyArchive(provider, archive, snapshot, signal)
    // The files may have been removed during the capture.
    signal.throwIfAborted()
    return info
  }

  /** Only the new box of a fork uses the snapshot of the fork: it is not stored where the provider can copy machines. */
  async function captureMachine(
    provider: Provider,
    boxId: string,
    claim: SnapshotClaim,
    signal: AbortSignal,
  ): Promise<ArchiveInfo> {
    const { snapshot } = claim
    const key = getArchiveKey(snapshot)
    if (snapshot.transient === 1 && provider.copyMachine !== undefined)
      return provider.copyMachine(boxId, key, await findFork(db, snapshot.id), signal)
    return provider.capture(boxId, key, 'files', signal, async (info) => {
      await recordCopy(db, claim, info, { owner, host, now: clock.now() })
      await scheduleWaitingBoxes(snapshot.id)
    })
  }

  async function copyArchive(
    provider: Provider,
    archive: ArchiveKey,
    snapshot: SnapshotClaim['snapshot'],
    signal: AbortSignal,
  ): Promise<ArchiveInfo> {
    const key = getArchiveKey(snapshot)
    if (snapshot.transient === 1 && provider.copyArchive !== undefined)
      return provider.copyArchive(archive, key, await findFork(db, snapshot.id), signal)
    return provider.copyFiles(archive, key, signal)
  }

  async function scheduleWaitingBoxes(id: string): Promise<void> {
    for (const boxId of await listWaitingBoxIds(db, id)) scheduleBox(boxId)
  }

  const removeArchive = (snapshot: SnapshotClaim['snapshot']) =>
    providers.inRegion(snapshot.region).removeArchive(getArchiveKey(snapshot))

  async function handleFailure(claim: SnapshotClaim, err: unknown): Promise<void> {
    const { snapshot, job } = claim
    const kind = classifyFailure(err)
    const message = (err instanceof Error ? err.message : String(err)).slice(0, MAX_ERROR_LENGTH)
    const isFinal = isFinalAttempt(claim, kind)
    log.warn(
      { err, snapshotId: snapshot.id, boxId: snapshot.box_id, op: job.op, attempt: job.attempt + 1 },
      isFinal ? 'snapshot failed; will not retry' : 'job of a snapshot failed; will retry',
    )
    const now = clock.now()
    const retryAt = now + retryDelays.next(snapshot.id, kind, job.attempt)
    await failSnapshotJob(db, claim, { message, kind, retryAt }, { owner, host, now })
  }

  async function start(): Promise<void> {
    runner.runDue()
  }

  const unsubscribe = subscribeToSnapshotJobs(db, runner.schedule, { onGap: runner.runAll })

  async function close(): Promise<void> {
    unsubscribe()
    await runner.close()
  }

  return { start, schedule: runner.schedule, runDue: runner.runDue, close }
}

const getArchiveKey = (snapshot: SnapshotClaim['snapshot']): ArchiveKey => ({
  workspaceId: snapshot.workspace_id,
  archiveId: snapshot.id,
})

/**
 * Returns the box with the region of its machine. The deletion of a box ends its move, also when the coordinator was killed
 * after the machine was taken over and before this was recorded.
 */
async function findMachine(
  box: BoxRow,
  { for: getProvider, byRegion }: Pick<Providers, 'for' | 'byRegion'>,
): Promise<BoxRow> {
  const { id, desired_region: newRegion } = box
  if (newRegion === null || (await getProvider(box).inspect(id)) !== 'absent') return box
  const provider = byRegion.get(newRegion)
  const state = (await provider?.inspect(id)) ?? 'absent'
  return state === 'absent' ? box : { ...box, region: newRegion, provider: provider?.name ?? box.provider }
}

/**
 * Returns the archive that has the files of the box; null: the machine has them. The archive has them when the box is in deep
 * sleep, is being woken and has no machine yet, or was deleted while its machine was being removed, which is then incomplete.
 */
async function findArchive(provider: Provider, box: BoxRow): Promise<ArchiveKey | null> {
  const { archive_id: archiveId, workspace_id: workspaceId } = box
  if (archiveId === null) return null
  const isPartlyRemoved = box.observed_state === 'suspended' && box.suspended_as === null
  const hasMachine = !isPartlyRemoved && (await provider.inspect(box.id)) !== 'absent'
  return hasMachine ? null : { workspaceId, archiveId }
}

/** The box that waits for the files of the snapshot of a fork; null: it has been deleted. */
async function findFork(db: Db, snapshotId: string): Promise<string | null> {
  const [boxId = null] = await listBoxIdsBySource(db, snapshotId)
  return boxId
}
