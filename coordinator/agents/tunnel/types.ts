// Types of the boxes' connections as the rest of the coordinator uses them.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { WebSocket } from 'ws'

/** A request whose body and response are complete in memory. */
export type TunnelCall = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path and query on the agent. */
  path: string
  headers?: Record<string, string> | undefined
  /** JSON. */
  body?: string | undefined
  /** Aborting makes the agent stop too. */
  signal?: AbortSignal | undefined
  /** Timeout for the complete response in milliseconds. */
  timeoutMs: number
  /** Returns the size of the largest response body that is accepted with this status, at most 64 MiB. Default: 64 KiB. */
  maxBytes?: (status: number) => number
}

export type TunnelCallResponse = { status: number; body: Buffer<ArrayBuffer> }

/** One open connection of one agent. */
export interface Tunnel {
  readonly boxId: string
  /** Increases with every connection of the box. */
  readonly generation: number
  readonly instanceId: string
  readonly agentVersion: string
  readonly protocolVersion: number
  /** The platform for which the agent installs builds, as PLATFORM_HEADER; null: the coordinator installs them. */
  readonly platform: string | null
  /** The failed upgrade that the agent reports, as `<build>@<time>`; see FAILED_BUILD_HEADER. null: none. */
  readonly failedBuild: string | null
  /**
   * Sends a request. Rejects with ApiError box_unreachable when the tunnel closes before the response, when there is none
   * in time, and when the version of the agent cannot serve the request; with exec_failed for a response that is too large;
   * and with the reason of the signal.
   */
  call(call: TunnelCall): Promise<TunnelCallResponse>
}

/** Observes each request to an agent, for metrics and traces. Resolves as `send()`. */
export type TunnelRequestObserver = (
  request: Pick<TunnelCall, 'method' | 'path'>,
  send: () => Promise<TunnelCallResponse>,
) => Promise<TunnelCallResponse>

export type TunnelEvents = {
  connected: [tunnel: Tunnel]
  /** The box has no tunnel now. Not emitted when a newer tunnel replaces one. */
  disconnected: [boxId: string, reason: string]
  /** The same for the tunnels of the other coordinators. */
  connectedElsewhere: [boxId: string]
  disconnectedElsewhere: [boxId: string, reason: string]
}

/** The tunnels of all boxes. Those at other coordinators are used through these, which is slower. */
export interface Tunnels {
  /** Also while the agent decides about a restart; requests of clients use wait(). */
  current(boxId: string): Tunnel | undefined
  /** As current(), when the agent is connected to this coordinator: for what only this coordinator has to do. */
  local(boxId: string): Tunnel | undefined
  /** The box's tunnel, as soon as it is connected and its agent does not decide about a restart. Rejects with box_unreachable after `ms`. */
  wait(boxId: string, ms: number, signal?: AbortSignal): Promise<Tunnel>
  on<E extends keyof TunnelEvents>(event: E, listener: (...args: TunnelEvents[E]) => void): void
  off<E extends keyof TunnelEvents>(event: E, listener: (...args: TunnelEvents[E]) => void): void
  /**
   * Waits for the agent to connect, and until all its reports are stored. Rejects with box_unreachable after `ms`, and with
   * another error when the agent does not support it.
   */
  flushReports(boxId: string, ms: number): Promise<void>
  /**
   * Closes the box's tunnel and its dial-back connections, for example because its token is no longer valid.
   * @param options.reconnect immediately: the agent reconnects without a delay, at the latest when its machine is thawed
   */
  disconnect(boxId: string, reason: string, options?: { reconnect?: 'immediately' }): void
}

/** A dial-back connection for one large body: GET to fetch it (upload), PUT to send it (download). */
export type TransferConnection = { request: IncomingMessage; response: ServerResponse }

export type PendingDialBack<T> = {
  /** Random, for one use. The agent presents it together with its own token. */
  readonly id: string
  /** Resolves when the agent has connected. Rejects with box_unreachable on timeout or discard(). */
  readonly connection: Promise<T>
  /** Rejects a later connection with this id, and closes the connection if the agent has connected. */
  discard(): void
}

export interface Transfers {
  expect(boxId: string): PendingDialBack<TransferConnection>
}

export interface Streams {
  /**
   * The connection is an object stream of Buffers, one stream frame each. It ends when the connection closes, cleanly or
   * not: the stream is complete if the last frame is a final one. The reader has to detect silence.
   */
  expect(boxId: string): PendingDialBack<Readable>
}

export interface Sockets {
  /** A connection for an attached client, paused: its messages are those of shared/attach-format.ts, unchecked. */
  expect(boxId: string): PendingDialBack<WebSocket>
}

/** Serves the connections of programs of boxes to the hosts of secrets. */
export type SecretConnectionServer = {
  /**
   * Called before the upgrade.
   * @param host from the path, unchecked
   * @returns serves the WebSocket, which is paused
   * @throws RejectedUpgrade
   */
  admit(boxId: string, host: string): Promise<(ws: WebSocket) => void>
}

export interface SecretConnections {
  /** Call it once. Until then connections are rejected. */
  setServer(server: SecretConnectionServer): void
}

/** What the tunnels need to know of enrolled machines. */
export type MachineAgents = {
  /** Whether the agent belongs to a machine whose box has been deleted. */
  isDeleted(boxId: string, tokenHash: string): Promise<boolean>
  /**
   * Stores the newest id of the lineage when the agent may connect. Boxes that are no machines are accepted without one.
   * @param lineage newest first; null: the agent has sent none
   */
  admit(
    boxId: string,
    lineage: readonly string[] | null,
  ): Promise<'accepted' | 'no_lineage' | { clonedFrom: string }>
}
