// Creates a workspace with its first owner.
import { newId } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { UserRow, WorkspaceRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { insertUser } from '../store/users.ts'
import { insertWorkspace } from '../store/workspaces.ts'

export type NewAccount = {
  /** A confirmed address; null: not confirmed yet. */
  email: string | null
  /** The name of the workspace and of its owner. */
  name: string
  /** Milliseconds since the epoch. */
  now: number
}

/** The part of an email address before the @. */
export const createDefaultName = (email: string): string =>
  (email.split('@', 1)[0] ?? '').slice(0, Math.min(LIMITS.memberNameChars, LIMITS.workspaceNameChars))

/** @param owner a user without an address has not joined */
export async function insertOwnedWorkspace(
  trx: Trx,
  name: string,
  owner: Pick<UserRow, 'email' | 'name'>,
  now: number,
): Promise<{ workspace: WorkspaceRow; user: UserRow }> {
  const workspace: WorkspaceRow = {
    id: newId('workspace'),
    name,
    zero_data_retention: 0,
    created_at: now,
    closing_at: null,
    purge_after: null,
  }
  const user: UserRow = {
    id: newId('user'),
    workspace_id: workspace.id,
    email: owner.email,
    name: owner.name,
    role: 'owner',
    created_at: now,
    joined_at: owner.email === null ? null : now,
    removed_at: null,
  }
  await insertWorkspace(trx, workspace)
  await insertUser(trx, user)
  return { workspace, user }
}

/** Creates the workspace of a sign-up. */
export async function createAccount(
  trx: Trx,
  { email, name, now }: NewAccount,
): Promise<{ workspace: WorkspaceRow; user: UserRow }> {
  const { workspace, user } = await insertOwnedWorkspace(trx, name, { email, name }, now)
  recordAuditEvent(trx, {
    kind: 'workspace.create',
    actor: { system: true, workspaceId: workspace.id },
    boxId: null,
    detail: { name, userId: user.id },
    at: now,
  })
  return { workspace, user }
}
