// Which connection speaks for which box. Every change compares generations, so a stale one can do no harm.
import { EventEmitter } from 'node:events'
import { ApiError } from '../../shared/errors.ts'
import type { Session } from './session.ts'
import type { Tunnel, TunnelEvents } from './types.ts'

export type Registry = {
  nextGeneration(): number
  get(boxId: string): Session | undefined
  all(): Iterable<Session>
  /** Makes the session its box's tunnel, ending an older one. False when a newer one is there already. */
  activate(session: Session): boolean
  /** Forgets the session, if it still is its box's tunnel. */
  remove(session: Session, reason: string): void
  wait(boxId: string, ms: number, signal?: AbortSignal): Promise<Tunnel>
  readonly events: EventEmitter<TunnelEvents>
}

export function createRegistry(): Registry {
  const sessions = new Map<string, Session>()
  const waiting = new Map<string, Set<(tunnel: Tunnel) => void>>()
  const events = new EventEmitter<TunnelEvents>()
  events.setMaxListeners(0)
  let generation = 0

  return {
    events,
    nextGeneration: () => ++generation,
    get: (boxId) => sessions.get(boxId),
    all: () => [...sessions.values()],
    activate(session) {
      const old = sessions.get(session.boxId)
      if (old !== undefined && old.generation > session.generation) return false
      sessions.set(session.boxId, session)
      old?.destroy('a newer connection of the box took over')
      const waiters = waiting.get(session.boxId)
      waiting.delete(session.boxId)
      for (const resume of waiters ?? []) resume(session)
      events.emit('connected', session)
      return true
    },
    remove(session, reason) {
      if (sessions.get(session.boxId)?.generation !== session.generation) return
      sessions.delete(session.boxId)
      events.emit('disconnected', session.boxId, reason)
    },
    wait(boxId, ms, signal) {
      const now = sessions.get(boxId)
      if (now !== undefined) return Promise.resolve(now)
      if (signal?.aborted) return Promise.reject(signal.reason)
      return new Promise((resolve, reject) => {
        const waiters = waiting.get(boxId) ?? new Set()
        waiting.set(boxId, waiters)
        const stop = () => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          waiters.delete(resume)
          if (waiters.size === 0 && waiting.get(boxId) === waiters) waiting.delete(boxId)
        }
        const resume = (tunnel: Tunnel) => {
          stop()
          resolve(tunnel)
        }
        const abort = () => {
          stop()
          reject(signal?.reason)
        }
        const timer = setTimeout(() => {
          stop()
          reject(new ApiError('box_unreachable'))
        }, ms)
        waiters.add(resume)
        signal?.addEventListener('abort', abort, { once: true })
      })
    },
  }
}
