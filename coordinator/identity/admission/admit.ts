// Asks for the admission of a request, in the transaction of the request.
import { ApiError } from '../../../shared/errors.ts'
import type { Trx } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { loadPolicy } from '../policies/service.ts'
import { findWorkspace } from '../store/workspaces.ts'
import { type AdmissionRequest, type DecideAdmission, decide as decideAdmission } from './decide.ts'

/** Throws the refusal as an ApiError. Call it after the other checks of the request, and before the first write. */
export type Admit = (trx: Trx, actor: Actor, request: AdmissionRequest) => Promise<void>

export function createAdmit(decide: DecideAdmission = decideAdmission): Admit {
  return async (trx, actor, request) => {
    const workspace = await findWorkspace(trx, actor.workspaceId)
    if (!workspace) throw new Error(`There is no workspace ${actor.workspaceId}.`)
    const policy = await loadPolicy(trx, actor.workspaceId)
    const refusal = decide(request, { actor, workspace, policy })
    if (refusal === null) return
    const { code, message, ...fields } = refusal
    throw new ApiError(code, message, { fields })
  }
}
