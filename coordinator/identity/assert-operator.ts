// Checks that a request comes from an operator of the coordinator.
import { ApiError } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import type { Actor } from '../http/actor.ts'
import { isFirstWorkspace } from './store/workspaces.ts'

/** The access of the route admits owners only. @throws ApiError not_owner for an owner of another workspace than the first one */
export async function assertOperator(db: Db, { workspaceId }: Pick<Actor, 'workspaceId'>): Promise<void> {
  if (await isFirstWorkspace(db, workspaceId)) return
  throw new ApiError(
    'not_owner',
    'Only an owner of the first workspace of this coordinator may send this request.',
  )
}
