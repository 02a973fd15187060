// Tracks dial-back connections: the coordinator issues a one-time id, and the agent opens a connection that presents it.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../shared/errors.ts'
import type { AuthenticatedBox, OnAuthenticated } from './credentials.ts'
import type { PendingDialBack } from './types.ts'

export type DialBacks<T> = {
  expect(boxId: string): PendingDialBack<T>
  /**
   * Consumes an id that an agent presents. Returns a function that delivers the connection; that returns false when the id
   * was discarded meanwhile.
   * @throws ApiError not_found for an unknown id, and for another box's id, which stays valid for that box; the errors of
   *   OnAuthenticated, with which the connection is rejected too
   */
  consumeId(box: AuthenticatedBox, id: string, socket: Duplex): (connection: T) => boolean
  /** Closes the open connections of a box. */
  disconnect(boxId: string): void
  /** Rejects everything that is pending. */
  close(): void
}

type Entry<T> = {
  boxId: string
  /** Set once the agent has presented the id. */
  socket: Duplex | null
  resolve(connection: T): boolean
  reject(error: Error): void
}

export type DialBackOptions = {
  /** How long an agent may take to connect. */
  dialBackTimeoutMs: number
  /** Called when an agent has presented an id of its box. */
  onAuthenticated?: OnAuthenticated | undefined
}

export function createDialBacks<T>({ dialBackTimeoutMs, onAuthenticated }: DialBackOptions): DialBacks<T> {
  const pending = new Map<string, Entry<T>>()
  const openSockets = new Map<string, Set<Duplex>>()

  function track(boxId: string, socket: Duplex): void {
    const sockets = openSockets.get(boxId) ?? new Set()
    openSockets.set(boxId, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0 && openSockets.get(boxId) === sockets) openSockets.delete(boxId)
    })
  }

  return {
    expect(boxId) {
      const id = randomBytes(16).toString('hex')
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      // The caller may discard the id without awaiting the connection.
      promise.catch(() => undefined)
      const timer = setTimeout(
        () =>
          entry.reject(
            new ApiError(
              'box_unreachable',
              'The agent did not open the dial-back connection in time. Try again.',
            ),
          ),
        dialBackTimeoutMs,
      )
      let settled = false
      const settle = () => {
        settled = true
        clearTimeout(timer)
        pending.delete(id)
      }
      const entry: Entry<T> = {
        boxId,
        socket: null,
        resolve(connection) {
          if (settled) return false
          settle()
          resolve(connection)
          return true
        },
        reject(error) {
          settle()
          reject(error)
        },
      }
      pending.set(id, entry)
      return {
        id,
        connection: promise,
        discard() {
          entry.socket?.destroy()
          entry.reject(
            new ApiError(
              'box_unreachable',
              'The request ended before the agent opened the dial-back connection. Try again.',
            ),
          )
        },
      }
    },
    consumeId(box, id, socket) {
      const { boxId } = box
      const entry = pending.get(id)
      if (entry === undefined || entry.boxId !== boxId)
        throw new ApiError(
          'not_found',
          'The id of the dial-back connection is unknown, expired or already used.',
        )
      pending.delete(id)
      try {
        onAuthenticated?.(socket, box, 'other')
      } catch (error) {
        entry.reject(error as Error)
        throw error
      }
      entry.socket = socket
      track(boxId, socket)
      return entry.resolve
    },
    disconnect(boxId) {
      for (const socket of [...(openSockets.get(boxId) ?? [])]) socket.destroy()
    },
    close() {
      for (const entry of [...pending.values()]) entry.reject(new ApiError('box_unreachable'))
    },
  }
}
