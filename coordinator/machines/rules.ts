// Decides who may enroll machines.
import { ApiError } from '../../shared/errors.ts'
import type { Trx } from '../db/transaction.ts'
import { byKey, bySession } from '../http/access.ts'
import type { Actor } from '../http/actor.ts'
import { loadPolicy } from '../identity/policies/service.ts'

/** A token is a credential: an API key must not create one, because the box of the token outlives the key (spec §5.7). */
export const createAccess = bySession('not_contractor')

/** The access to the tokens that exist: a revocation gives no rights. */
export const getEnrollmentAccess = (level: 'read' | 'write') =>
  byKey('boxes', level, { scope: 'workspace', roles: 'not_contractor' })

/** Throws not_allowed for a contractor, and policy_denied where the policy machineEnrollment excludes the role. */
export async function assertMayEnroll(trx: Trx, { workspaceId, role }: Actor): Promise<void> {
  if (role === 'contractor') throw new ApiError('not_allowed')
  if (role === 'owner') return
  const { machineEnrollment } = await loadPolicy(trx, workspaceId)
  if (machineEnrollment === 'owner')
    throw new ApiError(
      'policy_denied',
      'Only owners may enroll machines in this workspace. Ask an owner, or for a change of the policy machineEnrollment.',
      { fields: { rule: 'machineEnrollment' } },
    )
}
