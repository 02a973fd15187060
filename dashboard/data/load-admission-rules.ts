// Loads what decides whether a request for a box is admitted, as far as the user may read it.
import { mayReadEnvironments } from './access.ts'
import type { AdmissionRules } from './admission.ts'
import { getClient, session } from './live.ts'
import { getWorkspaceClient } from './workspace-client.ts'

export async function loadAdmissionRules(): Promise<AdmissionRules> {
  const [client, workspaceClient] = [getClient(), getWorkspaceClient()]
  const { user, billing: provider } = session.value ?? {}
  const role = user?.role ?? 'contractor'
  const userId = user?.id ?? ''
  const [{ regions }, { workspace }, policies, billing] = await Promise.all([
    client.listRegions(),
    workspaceClient.loadWorkspace(),
    mayReadEnvironments(role) ? client.loadPolicies() : null,
    role === 'owner' && provider !== 'off' ? workspaceClient.loadBilling() : null,
  ])
  // Owners are not limited.
  const memberLimits = role === 'member' ? (policies?.policy ?? null) : null
  const team = (memberLimits?.memberSpendCapUsd ?? null) === null ? null : await client.loadTeamStatus()
  return {
    userId,
    regions,
    closingAt: workspace.closingAt,
    allowedImages: policies?.policy.allowedImages ?? null,
    memberLimits,
    spentMicros: team?.members.find((member) => member.userId === userId)?.spendCycleMicros ?? 0,
    billing,
  }
}
