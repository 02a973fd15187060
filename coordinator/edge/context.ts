// What the edge needs of the rest of the coordinator, and nothing more.
import type { CommandTracker } from '../commands/command-tracker.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import type { Streams, Transfers, Tunnels } from '../tunnel/types.ts'
import type { EdgeLimiter } from './limits.ts'

export type EdgeContext = {
  limiter: EdgeLimiter
  tunnels: Tunnels
  transfers: Transfers
  streams: Streams
  boxes: {
    /** A live box by name or id, as far as the actor may see it; else rejects with not_found. */
    resolve(actor: Actor, nameOrId: string): Promise<BoxRow>
    /** Asks for the box to run. */
    wake(actor: Actor, boxId: string): Promise<unknown>
  }
  /** Puts commands into the history. */
  commandTracker: CommandTracker
  /** Resolves when the box is running and connected; rejects with box_unreachable after `ms`. */
  waitUntilRunning(boxId: string, ms: number, signal: AbortSignal): Promise<void>
  /** Aborts when the coordinator is about to stop: what is open for long ends then, and says so. */
  closing: AbortSignal
}
