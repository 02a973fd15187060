// Notices running boxes that are cut off, and has them looked after.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Tunnels } from '../tunnel/types.ts'
import { newJob } from './desire.ts'
import type { Provider } from './provider.ts'
import { boxesObserved, jobOf, lockBox, putJob, updateJob } from './store.ts'

export type WatchOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  provider: Provider
  tunnels: Tunnels
  onMachine<T>(work: () => Promise<T>): Promise<T>
  poke(boxId: string): void
  /** How long an agent may be away before its machine is looked at. */
  lostMs: number
}

export type Watch = {
  /** Looks at every machine that should be running: some may be gone since a coordinator looked last. */
  start(): Promise<void>
  close(): void
}

export function watchBoxes(options: WatchOptions): Watch {
  const { db, clock, log, provider, tunnels, onMachine, poke, lostMs } = options
  const timers = new Map<string, NodeJS.Timeout>()
  let closed = false

  function expectBack(boxId: string): void {
    if (closed) return
    forget(boxId)
    const timer = setTimeout(() => {
      timers.delete(boxId)
      if (!tunnels.current(boxId)) attempt(boxId, () => recover(boxId))
    }, lostMs)
    timers.set(boxId, timer.unref())
  }

  function forget(boxId: string): void {
    clearTimeout(timers.get(boxId))
    timers.delete(boxId)
  }

  function attempt(boxId: string, work: () => Promise<void>): void {
    work().catch((err: unknown) => {
      log.error({ err, boxId }, 'looking after a box failed; it is tried again')
      expectBack(boxId)
    })
  }

  async function recover(boxId: string): Promise<void> {
    const needed = await transaction(db, async (trx) => {
      const box = await lockBox(trx, boxId)
      if (box?.observed_state !== 'running' || box.desired_state !== 'running') return false
      if (await jobOf(trx, boxId)) return false
      await putJob(trx, {
        ...newJob(boxId, 'recover', 'inspect', 'system', clock.now()),
        reason: 'connection lost',
      })
      return true
    })
    if (needed) poke(boxId)
  }

  /** A box that was given up as cut off is there again: its job need not wait for its next try. */
  async function hurry(boxId: string): Promise<void> {
    const job = await jobOf(db, boxId)
    if (job?.op !== 'recover' || job.next_retry_at === null) return
    await transaction(db, (trx) => updateJob(trx, boxId, { next_retry_at: null, reason: 'connected again' }))
    poke(boxId)
  }

  const onConnected = ({ boxId }: { boxId: string }) => {
    forget(boxId)
    attempt(boxId, () => hurry(boxId))
  }

  async function start(): Promise<void> {
    const boxes = await boxesObserved(db, ['running'])
    const idle = boxes.filter((box) => box.desired_state === 'running' && box.job_op === null)
    await Promise.all(idle.map(({ id }) => onMachine(() => look(id))))
  }

  async function look(boxId: string): Promise<void> {
    if (closed) return
    let state: string
    try {
      state = await provider.inspect(boxId)
    } catch (err) {
      log.warn({ err, boxId }, 'a machine could not be looked at')
      state = 'unknown'
    }
    if (tunnels.current(boxId)) return
    if (state === 'stopped' || state === 'absent') attempt(boxId, () => recover(boxId))
    else expectBack(boxId)
  }

  tunnels.on('connected', onConnected)
  tunnels.on('disconnected', expectBack)

  function close(): void {
    closed = true
    tunnels.off('connected', onConnected)
    tunnels.off('disconnected', expectBack)
    for (const timer of timers.values()) clearTimeout(timer)
    timers.clear()
  }

  return { start, close }
}
