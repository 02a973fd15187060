// Watches running boxes for lost agent connections and creates recover jobs for them.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { JobRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import type { Providers } from '../../providers/regions.ts'
import { isElsewhere } from '../../replicas/hosts.ts'
import type { Replica } from '../../replicas/replica.ts'
import { recordBoxJob } from '../job-changes.ts'
import { listBoxesByObservedState } from '../store/box-lists.ts'
import { findBox } from '../store/boxes.ts'
import { findJob, updateJob, upsertJob } from '../store/jobs.ts'
import type { MachineLimits } from './machine-limits.ts'
import { createJobRow } from './set-desired-state.ts'
import { degradeIfUnavailable } from './unavailable-hosts.ts'

export type DisconnectMonitorOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  replica: Pick<Replica, 'host'>
  providers: Providers
  tunnels: Tunnels
  machineLimits: MachineLimits
  /** Triggers a reconciliation of the box. */
  schedule(boxId: string): void
  /** How long the agent of a running machine may be disconnected before its box is recovered. */
  disconnectGraceMs: number
}

export type DisconnectMonitor = {
  /**
   * Watches every box of the host that should be running and is not connected: its machine may have stopped while no coordinator was
   * running.
   */
  start(): Promise<void>
  close(): void
}

/** The interval between inspections of a machine whose agent is disconnected doubles from this. */
const MIN_INSPECT_INTERVAL_MS = 250

export function createDisconnectMonitor(options: DisconnectMonitorOptions): DisconnectMonitor {
  const { db, clock, log, replica, providers, tunnels, machineLimits, schedule, disconnectGraceMs } = options
  /** The boxes whose agent is disconnected. Aborting ends the watch. */
  const watches = new Map<string, AbortController>()
  let closed = false

  function startWatch(boxId: string): void {
    if (closed) return
    stopWatch(boxId)
    const watch = new AbortController()
    watches.set(boxId, watch)
    void recoverUnlessConnected(boxId, watch.signal).then(() => {
      if (watches.get(boxId) === watch) watches.delete(boxId)
    })
  }

  function stopWatch(boxId: string): void {
    watches.get(boxId)?.abort()
    watches.delete(boxId)
  }

  /**
   * Recovers the box when its machine has stopped, or when the grace period has passed. Inspects the machine repeatedly:
   * the init process exits after the agent, so the first inspection may find it running. Never rejects.
   */
  async function recoverUnlessConnected(boxId: string, signal: AbortSignal): Promise<void> {
    const graceEndsAt = performance.now() + disconnectGraceMs
    const canInspect = await hasMachineHere(boxId)
    if (!canInspect) await wait(disconnectGraceMs, signal)
    for (let intervalMs = MIN_INSPECT_INTERVAL_MS; !signal.aborted; intervalMs *= 2) {
      const hasStopped = canInspect && (await hasMachineStopped(boxId, signal))
      if (signal.aborted || tunnels.current(boxId)) return
      const remainingMs = graceEndsAt - performance.now()
      if (hasStopped || remainingMs <= 0) {
        try {
          return await recoverBox(boxId)
        } catch (err) {
          log.error({ err, boxId }, 'failed to create the recover job of a box; will retry')
        }
      }
      const delayMs = remainingMs > 0 ? Math.min(intervalMs, remainingMs) : intervalMs
      await wait(delayMs, signal)
    }
  }

  /** Only its agent knows whether an enrolled machine runs, and only its host whether another machine does. */
  async function hasMachineHere(boxId: string): Promise<boolean> {
    try {
      const box = await findBox(db, boxId)
      return box === undefined || (box.kind !== 'machine' && !isElsewhere(box, replica.host))
    } catch (err) {
      log.warn({ err, boxId }, 'failed to read the box of a disconnected agent')
      return true
    }
  }

  async function hasMachineStopped(boxId: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false
    try {
      const box = await findBox(db, boxId)
      if (box === undefined || isElsewhere(box, replica.host)) return false
      return await machineLimits(box)(async () => {
        return !signal.aborted && (await providers.for(box).inspect(boxId)) !== 'running'
      })
    } catch (err) {
      log.warn({ err, boxId }, 'failed to inspect a machine; will recover the box unless its agent connects')
      return false
    }
  }

  async function recoverBox(boxId: string): Promise<void> {
    const created = await transaction(db, async (trx) => {
      const box = await lockBox(trx, boxId)
      if (box?.observed_state !== 'running' || box.desired_state !== 'running') return false
      const job = await findJob(trx, boxId)
      if (job && job.op !== 'clean_up') return false
      // The agent may have connected while the transaction waited for a job of the box.
      if (tunnels.current(boxId)) return false
      if (await degradeIfUnavailable(trx, box, replica.host, clock.now())) return true
      const [op, step] =
        box.kind === 'machine' ? (['reconnect', 'connect'] as const) : (['recover', 'inspect'] as const)
      await upsertJob(trx, {
        ...createJobRow(boxId, op, step, 'system', clock.now()),
        reason: 'the agent of the box disconnected',
      })
      recordBoxJob(trx, boxId)
      return true
    })
    if (created) schedule(boxId)
  }

  /**
   * The agent has connected: runs a job that waits for it now, instead of at its next retry. A running job is scheduled too,
   * because its inspection may have just failed.
   */
  async function retryRecoveryNow(boxId: string): Promise<void> {
    if (!awaitsAgent(await findJob(db, boxId))) return
    await transaction(db, async (trx) => {
      if (awaitsAgent(await findJob(trx, boxId))) await updateJob(trx, boxId, { next_retry_at: null })
      recordBoxJob(trx, boxId)
    })
    schedule(boxId)
  }

  /** The box may have been deleted after the token of its agent was checked. */
  async function closeIfDeleted(boxId: string): Promise<void> {
    const box = await findBox(db, boxId)
    if (box?.observed_state === 'terminated') tunnels.disconnect(boxId, 'the box is deleted')
  }

  const onConnected = ({ boxId }: { boxId: string }) => {
    stopWatch(boxId)
    closeIfDeleted(boxId).catch((err: unknown) =>
      log.error({ err, boxId }, 'failed to read the box of a connected agent'),
    )
    retryRecoveryNow(boxId).catch((err: unknown) =>
      log.error({ err, boxId }, 'failed to reschedule the job of a box whose agent has connected'),
    )
  }

  async function start(): Promise<void> {
    const boxes = await listBoxesByObservedState(db, ['running'], replica.host)
    for (const { id, desired_state, job_op } of boxes) {
      const isSettled = desired_state === 'running' && (job_op === null || job_op === 'clean_up')
      if (isSettled && !tunnels.current(id)) startWatch(id)
    }
  }

  const onConnectedElsewhere = (boxId: string) => onConnected({ boxId })
  tunnels.on('connected', onConnected)
  tunnels.on('disconnected', startWatch)
  tunnels.on('connectedElsewhere', onConnectedElsewhere)
  tunnels.on('disconnectedElsewhere', startWatch)

  function close(): void {
    closed = true
    tunnels.off('connected', onConnected)
    tunnels.off('disconnected', startWatch)
    tunnels.off('connectedElsewhere', onConnectedElsewhere)
    tunnels.off('disconnectedElsewhere', startWatch)
    for (const boxId of [...watches.keys()]) stopWatch(boxId)
  }

  return { start, close }
}

const awaitsAgent = (job: JobRow | undefined): boolean =>
  job !== undefined && ['recover', 'enroll', 'reconnect'].includes(job.op)

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
