// What a box is asked to dial beside its tunnel: a one-time id is expected, and its agent dials in and presents it.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'
import type { Expected } from './types.ts'

export type DialIns<T> = {
  expect(boxId: string): Expected<T>
  /**
   * For who dials in with this id, once. Returns what hands over what became of it: false when nobody waits for it any
   * more.
   * @throws ApiError not_found, also for the id of another box: it looks like none, and stays there for whom it is for
   */
  take(boxId: string, id: string, socket: Duplex): (dialed: T) => boolean
  /** Ends what the box has dialed: its machine is gone, or its token is no longer valid. */
  cut(boxId: string): void
  /** Nothing more is waited for. */
  close(): void
}

type Pending<T> = { boxId: string; settle(dialed: T): boolean; fail(error: Error): void }

/** @param dialMs how long an agent has to dial, in milliseconds */
export function createDialIns<T>(dialMs: number): DialIns<T> {
  const pending = new Map<string, Pending<T>>()
  const open = new Map<string, Set<Duplex>>()

  function keep(boxId: string, socket: Duplex): void {
    const sockets = open.get(boxId) ?? new Set()
    open.set(boxId, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0 && open.get(boxId) === sockets) open.delete(boxId)
    })
  }

  return {
    expect(boxId) {
      const id = randomBytes(16).toString('hex')
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      // A caller that released it does not wait for it any more.
      promise.catch(() => undefined)
      const timer = setTimeout(
        () => entry.fail(new ApiError('box_unreachable', 'The box did not dial in.')),
        dialMs,
      )
      let over = false
      const forget = () => {
        over = true
        clearTimeout(timer)
        pending.delete(id)
      }
      const entry: Pending<T> = {
        boxId,
        settle(dialed) {
          if (over) return false
          forget()
          resolve(dialed)
          return true
        },
        fail(error) {
          forget()
          reject(error)
        },
      }
      pending.set(id, entry)
      return {
        id,
        dialed: promise,
        release: () => entry.fail(new ApiError('box_unreachable', 'It was released.')),
      }
    },
    take(boxId, id, socket) {
      const entry = pending.get(id)
      if (entry === undefined || entry.boxId !== boxId) throw new ApiError('not_found', 'No such transfer.')
      pending.delete(id)
      keep(boxId, socket)
      return entry.settle
    },
    cut(boxId) {
      for (const socket of [...(open.get(boxId) ?? [])]) socket.destroy()
    },
    close() {
      for (const entry of [...pending.values()]) entry.fail(new ApiError('box_unreachable'))
    },
  }
}
