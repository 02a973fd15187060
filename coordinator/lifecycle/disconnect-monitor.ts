// Watches running boxes for lost agent connections and creates recover jobs for them.
import type { LimitFunction } from 'p-limit'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Tunnels } from '../tunnel/types.ts'
import type { Provider } from './provider.ts'
import { createJobRow } from './set-desired-state.ts'
import { findJob, listBoxesByObservedState, lockBox, updateJob, upsertJob } from './store.ts'

export type DisconnectMonitorOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  provider: Provider
  tunnels: Tunnels
  /** Limits concurrent provider calls. */
  machineLimit: LimitFunction
  /** Triggers a reconciliation of the box. */
  schedule(boxId: string): void
  /** How long an agent may be disconnected before its box is recovered. */
  disconnectGraceMs: number
}

export type DisconnectMonitor = {
  /** Inspects every machine that should be running: some may have stopped while no coordinator was running. */
  start(): Promise<void>
  close(): void
}

export function createDisconnectMonitor(options: DisconnectMonitorOptions): DisconnectMonitor {
  const { db, clock, log, provider, tunnels, machineLimit, schedule, disconnectGraceMs } = options
  const graceTimers = new Map<string, NodeJS.Timeout>()
  let closed = false

  function startGraceTimer(boxId: string): void {
    if (closed) return
    clearGraceTimer(boxId)
    const timer = setTimeout(() => {
      graceTimers.delete(boxId)
      if (!tunnels.current(boxId)) runOrRetry(boxId, () => recoverBox(boxId))
    }, disconnectGraceMs)
    graceTimers.set(boxId, timer.unref())
  }

  function clearGraceTimer(boxId: string): void {
    clearTimeout(graceTimers.get(boxId))
    graceTimers.delete(boxId)
  }

  function runOrRetry(boxId: string, work: () => Promise<void>): void {
    work().catch((err: unknown) => {
      log.error({ err, boxId }, 'failed to create or reschedule the recover job of a box; will retry')
      startGraceTimer(boxId)
    })
  }

  async function recoverBox(boxId: string): Promise<void> {
    const created = await transaction(db, async (trx) => {
      const box = await lockBox(trx, boxId)
      if (box?.observed_state !== 'running' || box.desired_state !== 'running') return false
      if (await findJob(trx, boxId)) return false
      await upsertJob(trx, {
        ...createJobRow(boxId, 'recover', 'inspect', 'system', clock.now()),
        reason: 'connection lost',
      })
      return true
    })
    if (created) schedule(boxId)
  }

  /** The agent has reconnected: run a pending recover job now instead of at its next retry. */
  async function retryRecoveryNow(boxId: string): Promise<void> {
    const job = await findJob(db, boxId)
    if (job?.op !== 'recover' || job.next_retry_at === null) return
    await transaction(db, (trx) => updateJob(trx, boxId, { next_retry_at: null, reason: 'reconnected' }))
    schedule(boxId)
  }

  const onConnected = ({ boxId }: { boxId: string }) => {
    clearGraceTimer(boxId)
    runOrRetry(boxId, () => retryRecoveryNow(boxId))
  }

  async function start(): Promise<void> {
    const boxes = await listBoxesByObservedState(db, ['running'])
    const settledBoxes = boxes.filter((box) => box.desired_state === 'running' && box.job_op === null)
    await Promise.all(settledBoxes.map(({ id }) => machineLimit(() => inspectMachine(id))))
  }

  async function inspectMachine(boxId: string): Promise<void> {
    if (closed) return
    let state: string
    try {
      state = await provider.inspect(boxId)
    } catch (err) {
      log.warn({ err, boxId }, 'failed to inspect a machine; will recover the box unless its agent connects')
      state = 'unknown'
    }
    if (tunnels.current(boxId)) return
    if (state === 'stopped' || state === 'absent') runOrRetry(boxId, () => recoverBox(boxId))
    else startGraceTimer(boxId)
  }

  tunnels.on('connected', onConnected)
  tunnels.on('disconnected', startGraceTimer)

  function close(): void {
    closed = true
    tunnels.off('connected', onConnected)
    tunnels.off('disconnected', startGraceTimer)
    for (const timer of graceTimers.values()) clearTimeout(timer)
    graceTimers.clear()
  }

  return { start, close }
}
