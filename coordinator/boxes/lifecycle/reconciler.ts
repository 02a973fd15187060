// Moves every box's observed state towards its desired state, one step at a time per box.
import { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Ingest } from '../../agents/tunnel/reports.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { BoxNames } from '../../base/log/logger.ts'
import type { SubscribeOptions } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import { type RowSubscriber, subscribeToRows } from '../../db/row-changes.ts'
import { RetryDelays } from '../../jobs/failures.ts'
import { createJobRunner, INTERRUPTED, type JobRunner } from '../../jobs/job-runner.ts'
import { createLeases } from '../../jobs/leases.ts'
import { classifyFailure } from '../../providers/classify-failure.ts'
import { ImageError } from '../../providers/provider.ts'
import type { Providers } from '../../providers/regions.ts'
import type { Replica } from '../../replicas/replica.ts'
import { subscribeToBoxJobs } from '../job-changes.ts'
import { listLiveBoxNames, listUnreconciledBoxIds } from '../store/box-lists.ts'
import { type Claim, claimNextStep, completeStep, failStep, isFinalAttempt } from './claim.ts'
import { createMachineLimits, type MachineLimits } from './machine-limits.ts'
import type { StepObserver } from './step-observer.ts'
import { regionOf, runStep, type StepContext } from './steps.ts'
import { OP_DEFINITIONS } from './transitions.ts'

export type ReconcilerOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  replica: Pick<Replica, 'id' | 'host' | 'isLeaseValid' | 'events'>
  /** Gets the names of the live boxes, for the log. */
  boxNames?: BoxNames
  providers: Providers
  tunnels: Tunnels
  /** Stores the reports that agents could not send. */
  ingest: Pick<Ingest, 'apply'>
  /** See Module.prepareBox. Default: boxes need no preparation. */
  prepareBox?(boxId: string, signal: AbortSignal): Promise<void>
  /** See StepContext. Default: the provider downloads images. */
  ensureImage?: StepContext['ensureImage']
  /** See AgentConnections. Default: agents are not restarted. */
  restartAgent?(boxId: string): Promise<boolean>
  /** The coordinator's URL for agents to connect to, without a path. */
  coordinatorUrl: string
  machineLimits: MachineLimits
  /** How long a started agent has to connect. Default: 60 s. */
  connectTimeoutMs?: number
  /**
   * How long the agents of running machines may take to reconnect to this coordinator after its start. Default: 35 s, which
   * is more than their longest delay.
   */
  agentReconnectMs?: number
  /** See RetryDelays. */
  backoff?: (failures: number) => number
  /** Whether a suspend freezes the processes of a box, where that is possible. Default: true. */
  freezesBoxes?: boolean
  observer?: StepObserver | undefined
}

export type Reconciler = {
  /** Continues unfinished jobs. */
  start(): Promise<void>
  /** Triggers a reconciliation of the box. Call it after writing the box's desired state or job. */
  schedule(boxId: string): void
  /**
   * Calls the listener after this reconciler has written a box's state or job, and after another coordinator has changed the
   * box. Returns the unsubscribe function.
   */
  onChange(listener: (boxId: string) => void, options: SubscribeOptions): () => void
  /** Resolves when the running steps have finished. Unfinished jobs continue at the next start. */
  close(): Promise<void>
}

const MAX_ERROR_LENGTH = 500
const MAX_CONCURRENT_ARCHIVES = 4
const MAX_CONCURRENT_SPOOLS = 4

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { db, clock, log, replica, boxNames = new Map(), providers, tunnels, ingest } = options
  const { coordinatorUrl, machineLimits, prepareBox = async () => undefined } = options
  const { restartAgent = async () => false, ensureImage = async () => undefined } = options
  const { connectTimeoutMs = 60_000 } = options
  const { freezesBoxes = true, observer, agentReconnectMs = 35_000 } = options
  const reconnectsUntil = performance.now() + agentReconnectMs
  const { id: owner, host } = replica
  const retryDelays = new RetryDelays(options.backoff)
  const changes: BoxChanges = new EventEmitter<BoxChangeEvents>().setMaxListeners(0)
  const archiveLimits = createMachineLimits(MAX_CONCURRENT_ARCHIVES)
  const spoolLimits = createMachineLimits(MAX_CONCURRENT_SPOOLS)
  const leases = createLeases(db, 'jobs', replica)
  const runner = createJobRunner({
    clock,
    log,
    replica,
    target: 'box',
    run: reconcile,
    listDueIds: leases.listDueIds,
    findNextDueTime: leases.findNextDueTime,
  })

  const isConnected = (boxId: string) => tunnels.current(boxId) !== undefined

  async function reconcile(
    boxId: string,
    nextStep: () => AbortController | undefined,
  ): Promise<number | undefined> {
    /** Deadline of the current connect step. Planning the same step again does not extend it. */
    let connectDeadline: number | undefined
    let job: { op: Claim['op']; startedAt: number } | undefined
    for (let controller = nextStep(); controller; controller = nextStep()) {
      const result = await claimNextStep(db, boxId, { owner, host, now: clock.now() }, isConnected)
      changes.emit('change', boxId)
      if (typeof result === 'string') return undefined
      if ('dueAt' in result) return result.dueAt
      const { claim } = result
      boxNames.set(boxId, claim.box.hostname)
      if (job?.op !== claim.op) job = { op: claim.op, startedAt: clock.now() }
      connectDeadline =
        claim.step === 'connect' ? (connectDeadline ?? clock.now() + connectTimeoutMs) : undefined
      const remainingConnectMs = Math.max(0, (connectDeadline ?? 0) - clock.now())
      if (await runClaimedStep(claim, controller, remainingConnectMs)) {
        const durationMs = clock.now() - job.startedAt
        observer?.onJobComplete(claim.op, durationMs)
        log.info({ boxId, actor: claim.actor, durationMs }, `box ${OP_DEFINITIONS[claim.op].reason}`)
        job = undefined
        if (claim.op === 'delete') {
          boxNames.delete(boxId)
          // The agent of a machine may have reconnected before its token became invalid.
          tunnels.disconnect(boxId, 'the box is deleted')
        }
      }
      changes.emit('change', boxId)
    }
    await leases.release(boxId)
    return undefined
  }

  /** Resolves to true when the step has finished its job. */
  async function runClaimedStep(
    claim: Claim,
    controller: AbortController,
    remainingConnectMs: number,
  ): Promise<boolean> {
    const { box, op, step } = claim
    try {
      log.debug({ boxId: box.id, op, step, attempt: claim.attempt }, 'running lifecycle step')
      const context = {
        providers,
        tunnels,
        ingest,
        prepareBox,
        ensureImage,
        restartAgent,
        coordinatorUrl,
        signal: controller.signal,
        freezesBoxes,
        connectTimeoutMs: remainingConnectMs,
        reconnectsUntil,
        machineLimit: machineLimits(box),
        archiveLimit: archiveLimits(box),
        spoolLimit: spoolLimits(box),
        log,
      }
      const run = () => runStep(claim, context)
      // The claim may have waited for the database until after the lease was lost.
      if (!replica.isLeaseValid) return false
      const result = await (observer ? observer.observe(claim, run) : run())
      retryDelays.reset(box.id)
      return await completeStep(db, claim, result, { owner, host, now: clock.now() })
    } catch (error) {
      if (controller.signal.aborted && isInterruption(step, error)) return false
      await handleStepFailure(claim, error)
      return false
    }
  }

  async function handleStepFailure(claim: Claim, err: unknown): Promise<void> {
    const { box, op, step, attempt } = claim
    const kind = classifyFailure(err)
    const message = (err instanceof Error ? err.message : String(err)).slice(0, MAX_ERROR_LENGTH)
    const isFinal = isFinalAttempt(claim, kind)
    observer?.onFailure(claim, isFinal)
    log.warn(
      { err, boxId: box.id, op, step, attempt: attempt + 1 },
      isFinal ? 'lifecycle step failed; will not retry' : 'lifecycle step failed; will retry',
    )
    if (isFinal) {
      // Do not leave a partly created machine running. Its files are removed when the box is deleted.
      const stopMachine = async () => providers.inRegion(regionOf(claim)).stop(box.id)
      await stopMachine().catch((err: unknown) => {
        log.warn({ err, boxId: box.id }, 'failed to stop the machine of a failed box')
      })
    }
    const now = clock.now()
    const retryAt = now + retryDelays.next(box.id, kind, attempt)
    const code = err instanceof ImageError ? err.code : null
    await failStep(db, claim, { message, kind, code, retryAt }, { owner, host, now })
  }

  async function start(): Promise<void> {
    for (const { id, hostname } of await listLiveBoxNames(db)) boxNames.set(id, hostname)
    for (const boxId of await listUnreconciledBoxIds(db, host)) runner.schedule(boxId)
    runner.runDue()
  }

  return { start, schedule: runner.schedule, ...connectOthers(db, runner, changes) }
}

type BoxChangeEvents = { change: [boxId: string]; gap: [] }
type BoxChanges = EventEmitter<BoxChangeEvents>

/** Other coordinators write jobs that this one may run, and run jobs for which this one waits. */
function connectOthers(
  db: Db,
  runner: JobRunner,
  changes: BoxChanges,
): Pick<Reconciler, 'onChange' | 'close'> {
  const onRow: RowSubscriber = ({ table, id }, origin) => {
    if (table === 'boxes' && origin === 'elsewhere') changes.emit('change', id)
  }
  const unsubscribe = [
    subscribeToBoxJobs(db, runner.schedule, { onGap: runner.runAll }),
    subscribeToRows(db, onRow, { onGap: () => void changes.emit('gap') }),
  ]
  return {
    onChange(listener, { onGap }) {
      changes.on('change', listener).on('gap', onGap)
      return () => void changes.off('change', listener).off('gap', onGap)
    },
    async close() {
      for (const stop of unsubscribe) stop()
      await runner.close()
    },
  }
}

/** Whether to plan again now: the job may have changed, or the agent may have connected. */
const isInterruption = (step: Claim['step'], error: unknown): boolean =>
  step === 'connect' ||
  step === 'inspect' ||
  error === INTERRUPTED ||
  (error instanceof Error && error.name === 'AbortError')
