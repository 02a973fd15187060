// The limits of a workspace for which no request is admitted: those of the deployment, or lower ones of its plan.
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'

export type PlanLimits = {
  /** Without the copies that forks make. */
  snapshots: number
  secrets: number
  /** Open terminals. */
  terminals: number
}

export type LoadPlanLimits = (db: Db | Trx, workspaceId: string) => Promise<PlanLimits>

/** @param loadPlan reads the limits of the plan; undefined: billing is off, and no query runs */
export function createPlanLimits(
  deployment: PlanLimits,
  loadPlan: LoadPlanLimits | undefined,
): LoadPlanLimits {
  return async (db, workspaceId) => {
    if (loadPlan === undefined) return deployment
    const plan = await loadPlan(db, workspaceId)
    return {
      snapshots: Math.min(deployment.snapshots, plan.snapshots),
      secrets: Math.min(deployment.secrets, plan.secrets),
      terminals: Math.min(deployment.terminals, plan.terminals),
    }
  }
}
