// Creates dashboard sessions without a sign-in.
import type { UserRow } from '../../coordinator/db/schema.ts'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import { newId } from '../../shared/ids.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import type { RequestOptions, TestCoordinator } from './coordinator.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Adds a user with this role, or uses the owner of the coordinator, and starts a session of the user.
 * @returns the options that send a request by the session
 */
export async function createTestSession(
  { instance: coordinator }: Pick<TestCoordinator, 'instance'>,
  role?: UserRow['role'],
): Promise<RequestOptions & { userId: string; sessionId: string }> {
  const { db, clock } = coordinator.context
  const { workspaceId, userId: ownerId } = coordinator.owner ?? {}
  if (workspaceId === undefined || !ownerId) throw new Error('the coordinator has no owner')
  const now = clock.now()
  const userId = role === undefined ? ownerId : newId('user')
  if (role !== undefined) {
    const user = { id: userId, email: `${userId}@example.com`, name: role, role }
    await db
      .insertInto('users')
      .values({ ...user, workspace_id: workspaceId, created_at: now, joined_at: now })
      .execute()
  }
  const [sessionId, secret] = [newId('session'), newId('session')]
  await db
    .insertInto('sessions')
    .values({
      ...{ id: sessionId, hash: hashSecret(secret), workspace_id: workspaceId, user_id: userId },
      ...{ created_at: now, last_used_at: now, expires_at: now + DAY_MS },
    })
    .execute()
  return { userId, sessionId, key: null, headers: { cookie: `${SESSION_COOKIE}=${secret}` } }
}
