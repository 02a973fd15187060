// Inserts the box of an enrolled machine without a request.
import { insertMachine } from '../../coordinator/boxes/insert-machine.ts'
import type { Db } from '../../coordinator/db/open.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import { systemClock } from '../../shared/clock.ts'

/** Returns the id of the box. Its agent has not connected. */
export async function addMachine(db: Db, actor: Actor, name: string): Promise<string> {
  const box = await transaction(db, (trx) =>
    insertMachine(trx, {
      ...{ actor, name, preferredName: null, tier: 'nano', region: 'us-west-2', restricted: false },
      ...{ envVars: '[]', agentTokenHash: `hash of ${name}`, now: systemClock.now() },
    }),
  )
  return box.id
}
