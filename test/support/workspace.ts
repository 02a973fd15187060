// A workspace to test in: its people as actors, and boxes in it.
import { addKey, createKeyFinder, ensureFirstWorkspace, hashOf } from '../../coordinator/account/keys.ts'
import { type BoxService, type BoxServiceOptions, createBoxService } from '../../coordinator/boxes/service.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { UserRow } from '../../coordinator/db/schema.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { newApiKey, newId } from '../../shared/ids.ts'

export type TestClock = Clock & { advance(ms: number): void }

export function testClock(start = Date.UTC(2030, 0, 1)): TestClock {
  let now = start
  return {
    now: () => now,
    advance(ms) {
      now += ms
    },
  }
}

/** Makes the first workspace and returns its owner. */
export async function ownerOf(db: Db, clock: Clock = systemClock): Promise<Actor> {
  const { apiKey } = await ensureFirstWorkspace({ db, clock, newApiKey, keep: async () => undefined })
  if (!apiKey) throw new Error('There is a workspace already.')
  return actorWith(db, apiKey, clock)
}

export async function actorWith(db: Db, apiKey: string, clock: Clock = systemClock): Promise<Actor> {
  const found = await createKeyFinder({ db, clock })(hashOf(apiKey))
  if (!('actor' in found)) throw new Error(`The key is ${found.refused}.`)
  return found.actor
}

type Person = { role: UserRow['role']; boxIds?: string[]; access?: Actor['access'] }

/** One more user of the owner's workspace, with a key. */
export async function join(db: Db, owner: Actor, { role, boxIds, access }: Person): Promise<Actor> {
  const [userId, apiKey, now] = [newId('user'), newApiKey(), Date.now()]
  const { workspaceId } = owner
  await transaction(db, async (trx) => {
    await trx
      .insertInto('users')
      .values({
        id: userId,
        workspace_id: workspaceId,
        email: `${role}@example.com`,
        name: role,
        role,
        created_at: now,
      })
      .execute()
    const limits = { ...(boxIds && { boxIds }), ...(access && { access }) }
    await addKey(trx, { workspaceId, userId, hash: hashOf(apiKey), now, ...limits })
  })
  return actorWith(db, apiKey)
}

/** A box service that nobody listens to, unless the test does. */
export const boxesOf = (db: Db, options: Partial<BoxServiceOptions> = {}): BoxService =>
  createBoxService({
    db,
    clock: systemClock,
    poke: () => undefined,
    connected: () => false,
    heartbeat: () => undefined,
    ...options,
  })
