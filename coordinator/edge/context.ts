// The dependencies of the edge routes.

import type { Sockets, Streams, Transfers, Tunnels } from '../agents/tunnel/types.ts'
import type { RecordDesktop } from '../audit/record-connect.ts'
import type { PauseGate } from '../boxes/schedules/pause-gate.ts'
import type { BoxRow } from '../db/schema.ts'
import type { CommandTracker } from '../history/commands/command-tracker.ts'
import type { Actor } from '../http/actor.ts'
import type { AttachmentCounts } from './attachment-counts.ts'
import type { EdgeLimiter } from './limits.ts'
import type { ResponseParser } from './response-parser.ts'

export type EdgeContext = {
  limiter: EdgeLimiter
  pauseGate: Pick<PauseGate, 'version' | 'wait'>
  attachments: AttachmentCounts
  tunnels: Tunnels
  transfers: Transfers
  streams: Streams
  sockets: Sockets
  responseParser: ResponseParser
  boxes: {
    /** Finds a live box that the actor can see, by name or id. Rejects with not_found. */
    resolve(actor: Actor, nameOrId: string): Promise<BoxRow>
    /** Sets the desired state to running. */
    wake(actor: Actor, boxId: string): Promise<unknown>
  }
  /** Throws box_unreachable when no coordinator can start the box, because its host has none. */
  assertAvailable(box: BoxRow): Promise<void>
  /** The terminals that the workspace may have open. */
  loadTerminalLimit(workspaceId: string): Promise<number>
  /** Records commands in the history. */
  commandTracker: CommandTracker
  /** Records in the audit log that the actor opened a terminal or the desktop. */
  recordConnect(actor: Actor, boxId: string, session: string): Promise<void>
  /** Records in the audit log that the actor has connected to a port. */
  recordForward(actor: Actor, boxId: string, port: number): Promise<void>
  /** Records in the audit log that the actor has started or stopped a desktop. */
  recordDesktop: RecordDesktop
  /** Records that the box has accepted a prompt. */
  recordPrompt(box: BoxRow): Promise<void>
  /** Resolves when the box is running and connected. Rejects with box_unreachable after `ms`. */
  waitUntilRunning(boxId: string, ms: number, signal: AbortSignal): Promise<void>
  /** Aborts when the coordinator is about to stop: open streams then end with a reconnect event. */
  closing: AbortSignal
}
