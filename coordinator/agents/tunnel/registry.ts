// Maps each box to its current session. Every change compares generations, so a stale connection cannot evict a newer one.
import { EventEmitter } from 'node:events'
import { ApiError } from '../../../shared/errors.ts'
import type { Session } from './session.ts'
import type { TunnelEvents } from './types.ts'

export type Registry = {
  nextGeneration(): number
  get(boxId: string): Session | undefined
  all(): Iterable<Session>
  /** Makes the session its box's tunnel and closes an older one. False when a newer one is registered. */
  activate(session: Session): boolean
  /** Removes the session if it is its box's tunnel. */
  remove(session: Session, reason: string): void
  /**
   * Lets wait() wait for the next tunnel, or for the release of this one. The session stays its box's tunnel: nothing is
   * emitted. False when the session is not its box's tunnel, or is on hold already.
   */
  hold(session: Session): boolean
  /** Ends the hold: the waiting requests use the session, if it still is its box's tunnel. */
  release(session: Session): void
  /** Waits for a tunnel that is not on hold. Rejects with box_unreachable after `ms`. */
  wait(boxId: string, ms: number, signal?: AbortSignal): Promise<Session>
  readonly events: EventEmitter<TunnelEvents>
}

export function createRegistry(): Registry {
  const sessions = new Map<string, Session>()
  const waiters = new Map<string, Set<(session: Session) => void>>()
  const held = new Set<Session>()
  const events = new EventEmitter<TunnelEvents>()
  events.setMaxListeners(0)
  let generation = 0

  function resumeWaiters(session: Session): void {
    const waiting = waiters.get(session.boxId)
    waiters.delete(session.boxId)
    for (const resume of waiting ?? []) resume(session)
  }

  return {
    events,
    nextGeneration: () => ++generation,
    get: (boxId) => sessions.get(boxId),
    all: () => [...sessions.values()],
    activate(session) {
      const previous = sessions.get(session.boxId)
      if (previous !== undefined && previous.generation > session.generation) return false
      sessions.set(session.boxId, session)
      previous?.destroy('replaced by a newer connection')
      resumeWaiters(session)
      events.emit('connected', session)
      return true
    },
    remove(session, reason) {
      if (sessions.get(session.boxId)?.generation !== session.generation) return
      sessions.delete(session.boxId)
      events.emit('disconnected', session.boxId, reason)
    },
    hold(session) {
      if (sessions.get(session.boxId) !== session || held.has(session)) return false
      held.add(session)
      return true
    },
    release(session) {
      held.delete(session)
      if (sessions.get(session.boxId) === session) resumeWaiters(session)
    },
    wait(boxId, ms, signal) {
      const current = sessions.get(boxId)
      if (current !== undefined && !held.has(current)) return Promise.resolve(current)
      if (signal?.aborted) return Promise.reject(signal.reason)
      return new Promise((resolve, reject) => {
        const waiting = waiters.get(boxId) ?? new Set()
        waiters.set(boxId, waiting)
        const cleanUp = () => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', onAbort)
          waiting.delete(resume)
          if (waiting.size === 0 && waiters.get(boxId) === waiting) waiters.delete(boxId)
        }
        const resume = (session: Session) => {
          cleanUp()
          resolve(session)
        }
        const onAbort = () => {
          cleanUp()
          reject(signal?.reason)
        }
        const timer = setTimeout(() => {
          cleanUp()
          reject(new ApiError('box_unreachable', 'The agent of the box did not connect in time. Try again.'))
        }, ms)
        waiting.add(resume)
        signal?.addEventListener('abort', onAbort, { once: true })
      })
    },
  }
}
