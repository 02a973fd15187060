// What the rest of the coordinator sees of the boxes' connections: requests go in, answers come out.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'

export type TunnelRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path and query on the agent. */
  path: string
  headers?: Record<string, string>
  body?: Buffer | Readable
  /** Aborting resets the stream, on the box too. */
  signal?: AbortSignal
  /** How long the answer's head may take, in milliseconds; by default longer than the longest command. */
  headTimeoutMs?: number
}

export type TunnelResponse = {
  status: number
  headers: Record<string, string>
  /** Must be read to its end or destroyed. Errors with box_unreachable when the tunnel dies first. */
  body: Readable
}

/** One live connection of one agent. */
export interface Tunnel {
  readonly boxId: string
  /** Grows with every connection this coordinator accepts: a later one always has a higher one. */
  readonly generation: number
  readonly instanceId: string
  readonly agentVersion: string
  /** Rejects with ApiError box_unreachable when the tunnel is or becomes unusable before the answer's head. */
  request(request: TunnelRequest): Promise<TunnelResponse>
}

export type TunnelEvents = {
  connected: [tunnel: Tunnel]
  /** The box has no tunnel now. Not emitted when a newer tunnel took over. */
  disconnected: [boxId: string, reason: string]
}

/** All boxes' tunnels on this coordinator. */
export interface Tunnels {
  current(boxId: string): Tunnel | undefined
  /** The box's tunnel, now or as soon as it connects; rejects with box_unreachable after `ms`. */
  wait(boxId: string, ms: number, signal?: AbortSignal): Promise<Tunnel>
  on<E extends keyof TunnelEvents>(event: E, listener: (...args: TunnelEvents[E]) => void): void
  off<E extends keyof TunnelEvents>(event: E, listener: (...args: TunnelEvents[E]) => void): void
  /** Ends the box's tunnel and what it dialed beside it, e.g. because its token is no longer valid. */
  disconnect(boxId: string, reason: string): void
}

/** The connection an agent dialed for one large body: GET to fetch it (upload), PUT to bring it (download). */
export type DialedTransfer = { request: IncomingMessage; response: ServerResponse }

export type Expected<T> = {
  /** Random and for one use: the agent presents it together with its own token. */
  readonly id: string
  /** Settles when the agent has dialed; rejects with box_unreachable when it does not in time. */
  readonly dialed: Promise<T>
  /** Forgets what was not needed or has ended. */
  release(): void
}

export interface Transfers {
  expect(boxId: string): Expected<DialedTransfer>
}

/**
 * What an agent has others follow: bytes as they come. Their end is the same whether all of them were sent or the
 * connection was cut: they say themselves which is the last. Whether one is silent for too long is for its reader to say.
 */
export interface Streams {
  expect(boxId: string): Expected<Readable>
}
