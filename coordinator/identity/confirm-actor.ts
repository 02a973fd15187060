// Changes that give rights, such as keys, members and policies, need the rights of the actor at their commit: those of the
// start of the request may be a minute old.
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../shared/errors.ts'
import { lockWorkspace } from '../db/lock-workspace.ts'
import type { WorkspaceRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { CredentialLookup } from '../http/auth.ts'
import { findKeyActor } from './keys/keys.ts'
import { findSessionActor } from './sessions/find-session.ts'
import { findRole } from './store/users.ts'

export type ConfirmActor = (trx: Trx, actor: Actor, now: number) => Promise<WorkspaceRow>

/**
 * Locks the workspace of the actor, and asserts that the actor still has the rights of its authentication. A transaction that
 * takes rights locks the workspace too, so the two transactions run one after the other. A box is locked before its
 * workspace, a user, a key and a session after it.
 * @param now milliseconds since the epoch
 * @throws ApiError unauthorized when the credential is not valid any more, not_allowed when its rights have changed
 */
export const confirmActor: ConfirmActor = async (trx, actor, now) => {
  const workspace = await lockWorkspace(trx, actor.workspaceId)
  const found = await findActor(trx, actor, now)
  if (workspace === undefined || !('actor' in found))
    throw new ApiError(
      'unauthorized',
      'The credential of this request was revoked or has expired during the request. Use another credential.',
    )
  if (!isDeepStrictEqual(getRights(found.actor), getRights(actor))) throw createChangedError()
  return workspace
}

/**
 * Asserts that the user of the actor still has the role of the authentication. The caller has locked the workspace.
 * @throws ApiError not_allowed
 */
export async function confirmRole(trx: Trx, { userId, role }: Actor): Promise<void> {
  if (userId !== null && (await findRole(trx, userId)) !== role) throw createChangedError()
}

const createChangedError = (): ApiError =>
  new ApiError(
    'not_allowed',
    'The rights of this credential have changed during the request. Send the request again.',
  )

const getRights = ({ userId, role, access, boxIds }: Actor) => ({ userId, role, access, boxIds })

/** Tickets give no rights. */
async function findActor(trx: Trx, { credential }: Actor, now: number): Promise<CredentialLookup> {
  if (credential.type === 'key') return findKeyActor(trx, credential.id, now)
  if (credential.type === 'session') return findSessionActor(trx, credential.id, now)
  return { rejected: 'unknown' }
}
