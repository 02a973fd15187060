// Workspaces, users and credentials for the access tests, written to the database.
import { randomBytes } from 'node:crypto'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import { addApiKey, type KeyLimits } from '../../../coordinator/identity/keys/keys.ts'
import type { Role } from '../../../shared/api/account.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import { newId } from '../../../shared/ids.ts'
import { SESSION_COOKIE } from '../../../shared/session-cookie.ts'
import type { TestCoordinator } from '../../support/coordinator.ts'

const HOUR_MS = 3_600_000

export type User = { id: string; workspaceId: string; email: string }

export function createCredentials({ instance }: Pick<TestCoordinator, 'instance'>) {
  const { db, clock } = instance.context

  async function addWorkspace(name: string): Promise<string> {
    const id = newId('workspace')
    await db
      .insertInto('workspaces')
      .values({ id, name, zero_data_retention: 0, created_at: clock.now() })
      .execute()
    return id
  }

  async function addUser(workspaceId: string, role: Role): Promise<User> {
    const id = newId('user')
    const email = `${id}@example.com`
    const now = clock.now()
    await db
      .insertInto('users')
      .values({ id, workspace_id: workspaceId, email, name: role, role, created_at: now, joined_at: now })
      .execute()
    return { id, workspaceId, email }
  }

  async function addKey(user: User, limits: KeyLimits = {}): Promise<{ id: string; key: string }> {
    const key = newApiKey()
    const row = { workspaceId: user.workspaceId, userId: user.id, hash: hashSecret(key), now: clock.now() }
    return { id: await transaction(db, (trx) => addApiKey(trx, { ...row, ...limits })), key }
  }

  const revoke = (keyId: string) =>
    db.updateTable('api_keys').set({ revoked_at: clock.now() }).where('id', '=', keyId).execute()

  const setBoxes = (keyId: string, boxIds: string[]) =>
    db
      .updateTable('api_keys')
      .set({ box_ids: JSON.stringify(boxIds) })
      .where('id', '=', keyId)
      .execute()

  async function addSession(user: User, expiresAt = clock.now() + HOUR_MS) {
    const [id, token, now] = [newId('session'), `bws_${randomBytes(32).toString('base64url')}`, clock.now()]
    await db
      .insertInto('sessions')
      .values({
        ...{ id, hash: hashSecret(token), workspace_id: user.workspaceId, user_id: user.id },
        ...{ created_at: now, last_used_at: now, expires_at: expiresAt },
      })
      .execute()
    return { id, cookie: `${SESSION_COOKIE}=${token}` }
  }

  async function addTicket(user: User, boxId: string, expiresAt = clock.now() + HOUR_MS): Promise<string> {
    const [ticket, session] = [`dct_${randomBytes(24).toString('hex')}`, await addSession(user)]
    await db
      .insertInto('tickets')
      .values({
        ...{
          id: newId('ticket'),
          hash: hashSecret(ticket),
          workspace_id: user.workspaceId,
          user_id: user.id,
        },
        ...{ session_id: session.id, box_id: boxId, created_at: clock.now(), expires_at: expiresAt },
      })
      .execute()
    return ticket
  }

  return { addWorkspace, addUser, addKey, revoke, setBoxes, addSession, addTicket }
}
