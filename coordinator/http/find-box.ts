// How routes of other resources find the box that they belong to.
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from './actor.ts'

/** Every function that finds one box throws not_found for an id that is unknown or malformed, and for a box that the actor may not see. */
export type BoxFinder = {
  /** Finds a box by id, also a deleted one. */
  find(actor: Actor, id: string): Promise<BoxRow>
  /** Finds a box by id, also a deleted one, and locks its row until the transaction ends. */
  lock(trx: Trx, actor: Actor, id: string): Promise<BoxRow>
  /** Finds and locks a box like lock(). Throws not_found for a box that is deleted or being deleted. */
  lockLive(trx: Trx, actor: Actor, id: string): Promise<BoxRow>
  /** Finds a box that is not deleted, by name or id. Runs for every edge request. */
  resolve(actor: Actor, nameOrId: string): Promise<BoxRow>
  /** Which of these boxes exist, also as deleted ones, and may be seen by the actor. */
  listVisible(actor: Actor, ids: readonly string[]): Promise<string[]>
}
