// Moves every box's observed state towards its desired one: step by step, one step at a time per box.
import { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { newUuid } from '../../shared/ids.ts'
import { traitsOf } from '../db/dialects.ts'
import type { Db } from '../db/open.ts'
import type { Tunnels } from '../tunnel/types.ts'
import { backoff } from './backoff.ts'
import { type Claim, claimNext, givesUp, release, renew, stepDone, stepFailed } from './claim.ts'
import { createDueTimer } from './due-timer.ts'
import { PermanentProviderError, type Provider } from './provider.ts'
import { runStep } from './steps.ts'
import { dueBoxes, nextDue, reopenJobs, unsettledBoxes } from './store.ts'

export type ReconcilerOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  provider: Provider
  tunnels: Tunnels
  /** Where agents dial: the coordinator's URL without a path. */
  coordinatorUrl: string
  /** Takes one of the places for work on machines. */
  onMachine<T>(work: () => Promise<T>): Promise<T>
  /** See StepContext; nothing is waited for unless told. */
  settled?(boxId: string): Promise<void>
  /** A claim that is not renewed for this long is free; 30 s unless told. */
  leaseMs?: number
  /** How long a started agent has to connect; 60 s unless told. */
  connectMs?: number
  /** Milliseconds before a try, by its number from 1. */
  backoff?: (attempt: number) => number
}

export type Reconciler = {
  /** Goes on with what is unfinished. */
  start(): Promise<void>
  /** Something about the box was written: look at it now. */
  poke(boxId: string): void
  /** Calls back after each state or job of a box that this reconciler wrote; returns what ends that. */
  onChange(listener: (boxId: string) => void): () => void
  /** Ends after the steps that run now; jobs stay as they are for the next start. */
  close(): Promise<void>
}

/** Why a wait for an agent ended early. */
const LOOK_AGAIN = Symbol('look again')
const LONGEST_ERROR = 500
const RETRY_AFTER_STORE_ERROR_MS = 1_000

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { db, clock, log, provider, tunnels, coordinatorUrl, onMachine } = options
  const { leaseMs = 30_000, connectMs = 60_000, settled = async () => undefined } = options
  const retryDelay = options.backoff ?? backoff
  const owner = newUuid()
  const changes = new EventEmitter<{ change: [boxId: string] }>().setMaxListeners(0)
  const driven = new Map<string, { done: Promise<void>; again: boolean; interrupt: AbortController }>()
  let closing = false

  const timer = createDueTimer(
    clock,
    async () => {
      const now = clock.now()
      for (const boxId of await dueBoxes(db, now)) poke(boxId)
      const next = await nextDue(db, now)
      if (next !== undefined) timer.dueAt(next)
    },
    (error) => storeFailed(error, 'looking for due jobs'),
  )

  function storeFailed(err: unknown, doing: string): void {
    if (closing) return
    log.error({ err }, `the reconciler failed ${doing}; it tries again`)
    timer.dueAt(clock.now() + RETRY_AFTER_STORE_ERROR_MS)
  }

  function poke(boxId: string): void {
    if (closing) return
    const running = driven.get(boxId)
    if (running) {
      running.again = true
      running.interrupt.abort(LOOK_AGAIN)
      return
    }
    const state = { done: Promise.resolve(), again: false, interrupt: new AbortController() }
    driven.set(boxId, state)
    state.done = drive(boxId, state).then(
      () => ended(boxId, state.again),
      (error: unknown) => {
        ended(boxId, false)
        storeFailed(error, 'driving a box')
      },
    )
  }

  function ended(boxId: string, again: boolean): void {
    driven.delete(boxId)
    if (again) poke(boxId)
  }

  async function drive(boxId: string, state: { again: boolean; interrupt: AbortController }): Promise<void> {
    /** Of the connect step that is being waited in: looking again does not start it anew. */
    let connectUntil: number | undefined
    while (!closing) {
      state.again = false
      state.interrupt = new AbortController()
      const claimed = await claimNext(db, boxId, { owner, now: clock.now(), leaseMs })
      changes.emit('change', boxId)
      if (claimed === 'settled') return
      if ('dueAt' in claimed) return timer.dueAt(claimed.dueAt)
      const { claim } = claimed
      connectUntil = claim.step === 'connect' ? (connectUntil ?? clock.now() + connectMs) : undefined
      await perform(claim, state.interrupt, Math.max(0, (connectUntil ?? 0) - clock.now()))
      changes.emit('change', boxId)
    }
    await release(db, boxId, owner)
  }

  async function perform(claim: Claim, interrupt: AbortController, remainingMs: number): Promise<void> {
    const { box, op, step } = claim
    const { signal } = interrupt
    const renewal = setInterval(() => {
      renew(db, box.id, { owner, now: clock.now(), leaseMs }).then(
        (held) => held || interrupt.abort(LOOK_AGAIN),
        (err: unknown) => log.error({ err, boxId: box.id }, 'renewing a lease failed'),
      )
    }, leaseMs / 3)
    renewal.unref()
    try {
      log.debug({ boxId: box.id, op, step, attempt: claim.attempt }, 'lifecycle step')
      const context = {
        provider,
        tunnels,
        coordinatorUrl,
        signal,
        connectMs: remainingMs,
        onMachine,
        settled,
      }
      const result = await runStep(claim, context)
      await stepDone(db, claim, result, { owner, now: clock.now() })
    } catch (error) {
      if (step === 'connect' && signal.aborted) return
      await failed(claim, error)
    } finally {
      clearInterval(renewal)
    }
  }

  async function failed(claim: Claim, err: unknown): Promise<void> {
    const { box, op, step, attempt } = claim
    const permanent = err instanceof PermanentProviderError
    const message = (err instanceof Error ? err.message : String(err)).slice(0, LONGEST_ERROR)
    log.warn({ err, boxId: box.id, op, step, attempt: attempt + 1 }, 'a lifecycle step failed')
    if (givesUp(claim, permanent)) {
      // What was half made shall not go on running; its traces go with the box.
      await provider.stop(box.id).catch((err: unknown) => {
        log.warn({ err, boxId: box.id }, 'a machine that was given up could not be stopped')
      })
    }
    const now = clock.now()
    const retryAt = (tries: number) => now + retryDelay(tries)
    await stepFailed(db, claim, { message, permanent, retryAt }, { owner, now })
  }

  async function start(): Promise<void> {
    // One process at a time has this data: whoever held these leases is gone.
    if (!traitsOf(db).sharedByCoordinators) await reopenJobs(db)
    for (const boxId of await unsettledBoxes(db)) poke(boxId)
    timer.dueAt(clock.now())
  }

  async function close(): Promise<void> {
    closing = true
    timer.close()
    for (const { interrupt } of driven.values()) interrupt.abort(LOOK_AGAIN)
    await Promise.all([...driven.values()].map(({ done }) => done))
  }

  function onChange(listener: (boxId: string) => void) {
    changes.on('change', listener)
    return () => void changes.off('change', listener)
  }

  return { start, poke, onChange, close }
}
