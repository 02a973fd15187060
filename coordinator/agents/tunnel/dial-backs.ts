// Tracks dial-back connections: the coordinator issues a one-time id, and the agent opens a connection that presents it.
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
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
   * @param exchange what ends with the dial-back, when the socket may serve another request afterwards. Default: the socket
   */
  consumeId(
    box: AuthenticatedBox,
    id: string,
    socket: Duplex,
    exchange?: Exchange,
  ): (connection: T) => boolean
  /** Closes the open exchanges of a box. */
  disconnect(boxId: string): void
  /** Rejects everything that is pending. */
  close(): void
}

/** destroy() closes its connection, as long as it has one. */
type Exchange = Duplex | ServerResponse

type Entry<T> = {
  boxId: string
  /** Set once the agent has presented the id. */
  exchange: Exchange | null
  resolve(connection: T): boolean
  reject(error: Error): void
}

export type DialBackOptions = {
  /** How long an agent may take to connect. */
  dialBackTimeoutMs: number
  /** The ids of this coordinator begin with it, where several coordinators use the database. Default: ''. */
  idPrefix?: string | undefined
  /** Called when an agent has presented an id of its box. */
  onAuthenticated?: OnAuthenticated | undefined
}

export function createDialBacks<T>({
  dialBackTimeoutMs,
  idPrefix = '',
  onAuthenticated,
}: DialBackOptions): DialBacks<T> {
  const pending = new Map<string, Entry<T>>()
  const open = new Map<string, Set<Exchange>>()

  function track(boxId: string, exchange: Exchange): void {
    const ofBox = open.get(boxId) ?? new Set()
    open.set(boxId, ofBox.add(exchange))
    exchange.once('close', () => {
      ofBox.delete(exchange)
      if (ofBox.size === 0 && open.get(boxId) === ofBox) open.delete(boxId)
    })
  }

  return {
    expect(boxId) {
      const id = idPrefix + randomBytes(16).toString('hex')
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
        exchange: null,
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
          entry.exchange?.destroy()
          entry.reject(
            new ApiError(
              'box_unreachable',
              'The request ended before the agent opened the dial-back connection. Try again.',
            ),
          )
        },
      }
    },
    consumeId(box, id, socket, exchange = socket) {
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
      entry.exchange = exchange
      track(boxId, exchange)
      return entry.resolve
    },
    disconnect(boxId) {
      for (const exchange of [...(open.get(boxId) ?? [])]) exchange.destroy()
    },
    close() {
      for (const entry of [...pending.values()]) entry.reject(new ApiError('box_unreachable'))
    },
  }
}
