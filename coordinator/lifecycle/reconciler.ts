// Moves every box's observed state towards its desired state, one step at a time per box.
import { EventEmitter } from 'node:events'
import type { LimitFunction } from 'p-limit'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { newUuid } from '../../shared/ids.ts'
import { dialectTraits } from '../db/dialects.ts'
import type { Db } from '../db/open.ts'
import type { BoxNames } from '../log/logger.ts'
import type { Tunnels } from '../tunnel/types.ts'
import { backoffDelay } from './backoff.ts'
import {
  type Claim,
  claimNextStep,
  completeStep,
  failStep,
  isFinalAttempt,
  releaseLease,
  renewLease,
} from './claim.ts'
import { createDueTimer } from './due-timer.ts'
import { PermanentProviderError, type Provider } from './provider.ts'
import { runStep } from './steps.ts'
import {
  findNextDueTime,
  listDueBoxIds,
  listLiveBoxNames,
  listUnreconciledBoxIds,
  resetJobs,
} from './store.ts'
import { OP_DEFINITIONS } from './transitions.ts'

export type ReconcilerOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  /** Gets the names of the live boxes, for the log. */
  boxNames?: BoxNames
  provider: Provider
  tunnels: Tunnels
  /** The coordinator's URL for agents to connect to, without a path. */
  coordinatorUrl: string
  /** Limits concurrent provider calls. */
  machineLimit: LimitFunction
  /** How long a lease is valid after its last renewal. Default: 30 s. */
  leaseMs?: number
  /** How long a started agent has to connect. Default: 60 s. */
  connectTimeoutMs?: number
  /** Milliseconds to wait after `failedAttempts` failures (1 or more) of a step. Default: backoffDelay. */
  backoff?: (failedAttempts: number) => number
}

export type Reconciler = {
  /** Continues unfinished jobs. */
  start(): Promise<void>
  /** Triggers a reconciliation of the box. Call it after writing the box's desired state or job. */
  schedule(boxId: string): void
  /** Calls the listener after this reconciler has written a box's state or job. Returns the unsubscribe function. */
  onChange(listener: (boxId: string) => void): () => void
  /** Resolves when the running steps have finished. Unfinished jobs continue at the next start. */
  close(): Promise<void>
}

type ActiveReconciliation = {
  done: Promise<void>
  /** schedule() was called while the box was being reconciled. */
  isRescheduled: boolean
  /** Aborts waiting for the agent. */
  abortController: AbortController
}

/** The abort reason: the connect step must stop waiting for the agent. */
const STOP_WAITING = Symbol('stop waiting')
const MAX_ERROR_LENGTH = 500
const RETRY_AFTER_STORE_ERROR_MS = 1_000

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { db, clock, log, boxNames = new Map(), provider, tunnels, coordinatorUrl, machineLimit } = options
  const { leaseMs = 30_000, connectTimeoutMs = 60_000, backoff = backoffDelay } = options
  const owner = newUuid()
  const changes = new EventEmitter<{ change: [boxId: string] }>().setMaxListeners(0)
  const activeByBox = new Map<string, ActiveReconciliation>()
  let closing = false

  const timer = createDueTimer(
    clock,
    async () => {
      const now = clock.now()
      for (const boxId of await listDueBoxIds(db, now)) schedule(boxId)
      const nextDueTime = await findNextDueTime(db, now)
      if (nextDueTime !== undefined) timer.scheduleAt(nextDueTime)
    },
    (error) => retryAfterStoreError(error, 'failed to list due jobs; will retry'),
  )

  function retryAfterStoreError(err: unknown, message: string, fields: { boxId?: string } = {}): void {
    if (closing) return
    log.error({ err, ...fields }, message)
    timer.scheduleAt(clock.now() + RETRY_AFTER_STORE_ERROR_MS)
  }

  function schedule(boxId: string): void {
    if (closing) return
    const current = activeByBox.get(boxId)
    if (current) {
      current.isRescheduled = true
      current.abortController.abort(STOP_WAITING)
      return
    }
    const reconciliation: ActiveReconciliation = {
      done: Promise.resolve(),
      isRescheduled: false,
      abortController: new AbortController(),
    }
    activeByBox.set(boxId, reconciliation)
    reconciliation.done = reconcile(boxId, reconciliation).then(
      () => {
        activeByBox.delete(boxId)
        if (reconciliation.isRescheduled) schedule(boxId)
      },
      (error: unknown) => {
        activeByBox.delete(boxId)
        retryAfterStoreError(error, 'failed to reconcile a box; will retry', { boxId })
      },
    )
  }

  async function reconcile(boxId: string, reconciliation: ActiveReconciliation): Promise<void> {
    /** Deadline of the current connect step. Planning the same step again does not extend it. */
    let connectDeadline: number | undefined
    let job: { op: Claim['op']; startedAt: number } | undefined
    while (!closing) {
      reconciliation.isRescheduled = false
      reconciliation.abortController = new AbortController()
      const result = await claimNextStep(db, boxId, { owner, now: clock.now(), leaseMs })
      changes.emit('change', boxId)
      if (result === 'settled') return
      if ('dueAt' in result) return timer.scheduleAt(result.dueAt)
      const { claim } = result
      boxNames.set(boxId, claim.box.hostname)
      if (job?.op !== claim.op) job = { op: claim.op, startedAt: clock.now() }
      connectDeadline =
        claim.step === 'connect' ? (connectDeadline ?? clock.now() + connectTimeoutMs) : undefined
      const remainingConnectMs = Math.max(0, (connectDeadline ?? 0) - clock.now())
      const isFinished = await runClaimedStep(claim, reconciliation.abortController, remainingConnectMs)
      if (isFinished) {
        const durationMs = clock.now() - job.startedAt
        log.info({ boxId, actor: claim.actor, durationMs }, `box ${OP_DEFINITIONS[claim.op].reason}`)
        job = undefined
        if (claim.op === 'delete') boxNames.delete(boxId)
      }
      changes.emit('change', boxId)
    }
    await releaseLease(db, boxId, owner)
  }

  /** Resolves to true when the step has finished its job. */
  async function runClaimedStep(
    claim: Claim,
    abortController: AbortController,
    remainingConnectMs: number,
  ): Promise<boolean> {
    const { box, op, step } = claim
    const { signal } = abortController
    const renewal = setInterval(() => {
      renewLease(db, box.id, { owner, now: clock.now(), leaseMs }).then(
        (isRenewed) => isRenewed || abortController.abort(STOP_WAITING),
        (err: unknown) => log.error({ err, boxId: box.id }, 'failed to renew a lease; will retry'),
      )
    }, leaseMs / 3)
    renewal.unref()
    try {
      log.debug({ boxId: box.id, op, step, attempt: claim.attempt }, 'running lifecycle step')
      const context = {
        provider,
        tunnels,
        coordinatorUrl,
        signal,
        connectTimeoutMs: remainingConnectMs,
        machineLimit,
        log,
      }
      const result = await runStep(claim, context)
      return await completeStep(db, claim, result, { owner, now: clock.now() })
    } catch (error) {
      if (step === 'connect' && signal.aborted) return false
      await handleStepFailure(claim, error)
      return false
    } finally {
      clearInterval(renewal)
    }
  }

  async function handleStepFailure(claim: Claim, err: unknown): Promise<void> {
    const { box, op, step, attempt } = claim
    const permanent = err instanceof PermanentProviderError
    const message = (err instanceof Error ? err.message : String(err)).slice(0, MAX_ERROR_LENGTH)
    const isFinal = isFinalAttempt(claim, permanent)
    log.warn(
      { err, boxId: box.id, op, step, attempt: attempt + 1 },
      isFinal ? 'lifecycle step failed; will not retry' : 'lifecycle step failed; will retry',
    )
    if (isFinal) {
      // Do not leave a partly created machine running. Its files are removed when the box is deleted.
      await provider.stop(box.id).catch((err: unknown) => {
        log.warn({ err, boxId: box.id }, 'failed to stop the machine of a failed box')
      })
    }
    const now = clock.now()
    const retryAt = (failedAttempts: number) => now + backoff(failedAttempts)
    await failStep(db, claim, { message, permanent, retryAt }, { owner, now })
  }

  async function start(): Promise<void> {
    for (const { id, hostname } of await listLiveBoxNames(db)) boxNames.set(id, hostname)
    // When coordinators do not share the database, no other coordinator is running: the stored leases are obsolete.
    if (!dialectTraits(db).sharedByCoordinators) await resetJobs(db)
    for (const boxId of await listUnreconciledBoxIds(db)) schedule(boxId)
    timer.scheduleAt(clock.now())
  }

  async function close(): Promise<void> {
    closing = true
    timer.close()
    for (const { abortController } of activeByBox.values()) abortController.abort(STOP_WAITING)
    await Promise.all([...activeByBox.values()].map(({ done }) => done))
  }

  function onChange(listener: (boxId: string) => void) {
    changes.on('change', listener)
    return () => void changes.off('change', listener)
  }

  return { start, schedule, onChange, close }
}
