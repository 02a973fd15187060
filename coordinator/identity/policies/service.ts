// Reads and changes the policies of a workspace (spec §2.9, §4.11).
import { isDeepStrictEqual } from 'node:util'
import {
  DEFAULT_POLICY,
  isTimezone,
  type PatchPolicyRequest,
  POLICY_NAMES,
  type Policy,
  type PolicyName,
  type PolicyResponse,
} from '../../../shared/api/policies.ts'
import { type Clock, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { type AuditDetail, recordAuditEvent } from '../../audit/service.ts'
import type { Origin } from '../../db/notification-hub.ts'
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import type { PolicyRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { confirmActor } from '../confirm-actor.ts'
import { assertOpen } from '../workspaces/service.ts'
import { findPolicy, listWorkspacesWithPolicy, upsertPolicy } from './store.ts'

export type PolicyService = {
  get(actor: Actor): Promise<PolicyResponse>
  /** @throws ApiError bad_request for no field, workspace_closing */
  update(actor: Actor, changes: PatchPolicyRequest): Promise<PolicyResponse>
}

/** All policies of a workspace, after and before a change of one of them. */
export type PolicyChange = { workspaceId: string; policy: Policy; before: Policy }

const POLICIES = defineTopic<PolicyChange>('policies')

/** See subscribe(). */
export const subscribeToPolicies = (
  db: Db,
  listener: (change: PolicyChange, origin: Origin) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, POLICIES, listener, options)

/** The policies of the workspace, with the default of each policy that is not set. */
export const loadPolicy = async (db: Db | Trx, workspaceId: string): Promise<Policy> =>
  parsePolicy(await findPolicy(db, workspaceId))

export const loadAuditRetentionDays = async (db: Db, workspaceId: string): Promise<number> =>
  (await loadPolicy(db, workspaceId)).auditRetentionDays

/** The ids of the workspaces that have quiet hours. */
export const listWorkspacesWithQuietHours = (db: Db): Promise<string[]> =>
  listWorkspacesWithPolicy(db, 'quietHours')

/** @param row undefined: the workspace has changed no policy. A row has only the policies that are set */
export const parsePolicy = (row: Pick<PolicyRow, 'policy'> | undefined): Policy => ({
  ...DEFAULT_POLICY,
  ...(row && (JSON.parse(row.policy) as Partial<Policy>)),
})

function present(row: PolicyRow | undefined): PolicyResponse {
  const policy = parsePolicy(row)
  return {
    policy,
    updatedBy: row?.updated_by ?? null,
    updatedAt: toTimestampOrNull(row?.updated_at ?? null),
    quietHoursProblem: describeProblem(policy.quietHours),
  }
}

/** A later version of Node may not know the time zone that was set. */
const describeProblem = (quietHours: Policy['quietHours']): string | null =>
  quietHours === null || isTimezone(quietHours.timezone)
    ? null
    : `The coordinator does not know the time zone ${quietHours.timezone}, so no quiet hours start. Set quietHours with another time zone.`

export function createPolicyService({ db, clock }: { db: Db; clock: Clock }): PolicyService {
  const update = (actor: Actor, changes: PatchPolicyRequest) =>
    transaction(db, async (trx) => {
      if (Object.keys(changes).length === 0)
        throw new ApiError('bad_request', 'body must have at least one policy to change')
      const { workspaceId } = actor
      const now = clock.now()
      await confirmActor(trx, actor, now)
      await assertOpen(trx, workspaceId)
      const row = await findPolicy(trx, workspaceId)
      const before = parsePolicy(row)
      const after = applyChanges(before, changes)
      const changed = POLICY_NAMES.filter((name) => !isDeepStrictEqual(before[name], after[name]))
      if (changed.length === 0) return present(row)
      const written: PolicyRow = {
        workspace_id: workspaceId,
        policy: JSON.stringify(listSetPolicies(after)),
        updated_by: actor.userId,
        updated_at: now,
      }
      await upsertPolicy(trx, written)
      const detail = describeChange(after, changed)
      recordAuditEvent(trx, { kind: 'policy.update', actor, boxId: null, detail, at: now })
      notify(trx, POLICIES, { workspaceId, policy: after, before })
      return present(written)
    })

  return {
    get: async ({ workspaceId }) => present(await findPolicy(db, workspaceId)),
    update,
  }
}

function applyChanges(policy: Policy, changes: PatchPolicyRequest): Policy {
  const values = POLICY_NAMES.map((name) => {
    const value = changes[name]
    if (value === undefined) return [name, policy[name]]
    return [name, value ?? DEFAULT_POLICY[name]]
  })
  return Object.fromEntries(values) as Policy
}

const listSetPolicies = (policy: Policy): Partial<Policy> =>
  Object.fromEntries(
    Object.entries(policy).filter(([name, value]) => value !== DEFAULT_POLICY[name as PolicyName]),
  )

/** The names of the changed policies, and their new values apart from quietHours, which is an object. */
function describeChange(policy: Policy, changed: readonly PolicyName[]): AuditDetail {
  const values = changed.flatMap((name) => {
    const value = policy[name]
    return value === null || typeof value !== 'object' ? [[name, value] as const] : []
  })
  return { fields: changed.join(','), ...Object.fromEntries(values) }
}
