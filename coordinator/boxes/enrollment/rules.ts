// Decides who may enroll machines.
import { ApiError } from '../../../shared/errors.ts'
import type { Trx } from '../../db/transaction.ts'
import { byKey } from '../../http/access.ts'
import type { Actor } from '../../http/actor.ts'
import { loadPolicy } from '../../identity/policies/service.ts'

/** Returns the access that the routes of tokens need, and that the key of a token's creator needs at the exchange. */
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
