// Decides who operates the coordinator: the owners of its first workspace, with the key of the machine or a dashboard session.
import { ApiError } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import { assertRole, NEEDS_OPERATOR } from '../http/access.ts'
import type { Actor } from '../http/actor.ts'
import { hashSecret } from '../http/hash-secret.ts'
import { findKey } from './store/keys.ts'
import { isFirstWorkspace } from './store/workspaces.ts'

export type AssertOperator = (actor: Actor) => Promise<void>

export type AssertOperatorOptions = {
  db: Db
  /** The content of the key file in the data directory, which only the user of the coordinator can read; '': there is none. */
  readOwnerKey(): Promise<string>
}

/**
 * All routes of the operator use it. Throws unauthorized for an API key that is not the one in the key file, or is limited, and for
 * a ticket; not_allowed for a contractor; and not_owner for other users than owners of the first workspace.
 */
export function createAssertOperator({ db, readOwnerKey }: AssertOperatorOptions): AssertOperator {
  async function isKeyOfMachine({ credential, access, boxIds }: Actor): Promise<boolean> {
    if (access !== null || boxIds !== null) return false
    const key = await findKey(db, credential.id)
    return key?.hash === hashSecret(await readOwnerKey())
  }

  return async (actor) => {
    const { type } = actor.credential
    if (type !== 'session' && !(type === 'key' && (await isKeyOfMachine(actor))))
      throw new ApiError('unauthorized', NEEDS_OPERATOR)
    assertRole(actor, 'owner')
    if (!(await isOperator(db, actor)))
      throw new ApiError(
        'not_owner',
        'Only an owner of the first workspace of this coordinator may send this request.',
      )
  }
}

/** Whether the user of the actor operates the coordinator. The caller has checked the credential. */
export const isOperator = async (
  db: Db | Trx,
  { role, workspaceId }: Pick<Actor, 'role' | 'workspaceId'>,
): Promise<boolean> => role === 'owner' && isFirstWorkspace(db, workspaceId)
