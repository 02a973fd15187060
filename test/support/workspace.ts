// Creates a test clock, a workspace, its users as actors, and its box service.

import { createBoxFinder } from '../../coordinator/boxes/find-box.ts'
import { type BoxService, type BoxServiceOptions, createBoxService } from '../../coordinator/boxes/service.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { UserRow } from '../../coordinator/db/schema.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import {
  addApiKey,
  createKeyFinder,
  ensureFirstWorkspace,
  type KeyLimits,
} from '../../coordinator/identity/keys/keys.ts'
import { serveAllRegions } from '../../coordinator/providers/regions.ts'
import { newApiKey } from '../../shared/api-key.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { newId } from '../../shared/ids.ts'
import { createTestBoxHooks } from './box-hooks.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'
import { TEST_HOST } from './replica.ts'

export type TestClock = Clock & { advance(ms: number): void }

export function createTestClock(start = Date.UTC(2030, 0, 1)): TestClock {
  let now = start
  return {
    now: () => now,
    advance(ms) {
      now += ms
    },
  }
}

/** Creates the first workspace and returns its owner. */
export async function createOwner(db: Db, clock: Clock = systemClock): Promise<Actor> {
  const { apiKey } = await ensureFirstWorkspace({ db, clock, newApiKey, storeKey: async () => undefined })
  if (!apiKey) throw new Error('the database already has a workspace')
  return findActorByKey(db, apiKey, clock)
}

export async function findActorByKey(db: Db, apiKey: string, clock: Clock = systemClock): Promise<Actor> {
  const found = await createKeyFinder({ db, clock })(hashSecret(apiKey))
  if (!('actor' in found)) throw new Error(`The key is ${found.rejected}.`)
  return found.actor
}

type NewUser = { role: UserRow['role']; boxIds?: string[]; access?: Actor['access'] }

/** Adds a user with a key to the owner's workspace. */
export async function addUser(db: Db, owner: Actor, { role, boxIds, access }: NewUser): Promise<Actor> {
  const userId = newId('user')
  const { workspaceId } = owner
  await db
    .insertInto('users')
    .values({
      id: userId,
      workspace_id: workspaceId,
      email: `${role}-${userId}@example.com`,
      name: role,
      role,
      created_at: Date.now(),
    })
    .execute()
  const limits = { ...(boxIds && { boxIds }), ...(access && { access }) }
  return addKeyOf(db, { workspaceId, userId }, limits)
}

/** Adds a key of the user to the workspace. Returns its actor. */
export async function addKeyOf(
  db: Db,
  { workspaceId, userId }: { workspaceId: string; userId: string | null },
  limits: KeyLimits = {},
): Promise<Actor> {
  const apiKey = newApiKey()
  await transaction(db, (trx) =>
    addApiKey(trx, { workspaceId, userId, hash: hashSecret(apiKey), now: Date.now(), ...limits }),
  )
  return findActorByKey(db, apiKey)
}

/** A box service without a lifecycle service, unless the options provide one. */
export const createTestBoxService = (db: Db, options: Partial<BoxServiceOptions> = {}): BoxService =>
  createBoxService({
    db,
    finder: createBoxFinder(db),
    clock: systemClock,
    host: TEST_HOST,
    ...createTestBoxHooks(db, options.clock),
    regions: serveAllRegions(new FakeInfrastructure().provider),
    schedule: () => undefined,
    isConnected: () => false,
    latestHeartbeat: () => undefined,
    ...options,
  })
