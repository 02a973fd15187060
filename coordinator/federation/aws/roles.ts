// The AWS roles of a workspace: lists, connects, verifies and disconnects them (spec §4.6).
import type { AwsRole, AwsRoleList, ConnectRoleRequest } from '../../../shared/api/federation.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { AWS_TOKEN_PATH } from '../../../shared/field-values.ts'
import { isId, newId } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import type { Db } from '../../db/open.ts'
import type { AwsRoleRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { type Actor, formatActor } from '../../http/actor.ts'
import { recordDeletion, repeatDeletion } from '../../http/deletions.ts'
import type { ConfirmActor } from '../../identity/confirm-actor.ts'
import { assertOpen } from '../../identity/workspaces/service.ts'
import { getSubjectPattern, type Issuer } from '../issuer/issuer.ts'
import type { Availability } from './availability.ts'
import { recordCredentialChange } from './credential-changes.ts'
import type { VerifyResult } from './parse-sts-response.ts'
import { presentRole, toVerification } from './present.ts'
import { deleteRole, findRole, insertRole, listRoles, updateRole } from './role-store.ts'
import { AUDIENCE, decideConnection } from './rules.ts'
import type { AssumeRole } from './sts.ts'

/** Verifications of a workspace at once, and per second. Each sends a request to AWS. */
const VERIFICATIONS = { capacity: 20, perSecond: 0.5 }
const VERIFY_SESSION = 'boxwood-verify'

export type AwsRoles = {
  list(actor: Actor): Promise<AwsRoleList>
  /**
   * @returns isNew: false for a role that is connected already
   * @throws ApiError aws_federation_disabled, already_connected, profile_taken, aws_roles_limit, workspace_closing, rate_limited
   */
  connect(actor: Actor, request: ConnectRoleRequest): Promise<{ role: AwsRole; isNew: boolean }>
  /** Throws aws_federation_disabled, not_found, rate_limited. */
  verify(actor: Actor, id: string): Promise<AwsRole>
  /** Throws not_found. */
  disconnect(actor: Actor, id: string): Promise<void>
}

/** Assumes a role as the workspace. Never rejects. */
export type VerifyRole = (workspaceId: string, roleArn: string) => Promise<VerifyResult>

export type AwsRolesOptions = {
  db: Db
  clock: Clock
  issuer: Pick<Issuer, 'url'>
  availability: Availability
  confirmActor: ConfirmActor
  verifyRole: VerifyRole
  /** Called after the commit of a change of the roles of a workspace. */
}

export const createVerifyRole =
  (issuer: Pick<Issuer, 'issue'>, assumeRole: AssumeRole): VerifyRole =>
  async (workspaceId, roleArn) => {
    const { content: token } = await issuer.issue({ workspaceId, use: 'verify' }, AUDIENCE)
    return assumeRole({ roleArn, sessionName: VERIFY_SESSION, token })
  }

export function createAwsRoles(options: AwsRolesOptions): AwsRoles {
  const { db, clock, issuer, availability, confirmActor, verifyRole } = options
  const verifications = createTokenBuckets(clock, VERIFICATIONS)

  function assertEnabled(): void {
    if (issuer.url === null) throw new ApiError('aws_federation_disabled')
  }

  function countVerification({ workspaceId }: Actor): void {
    const waitMs = verifications.take(workspaceId)
    if (waitMs > 0) rejectLimited(waitMs, 'Too many roles were verified.')
  }

  /** Verifies a stored role, and stores the result, which changes nothing for boxes. */
  async function verifyStored(
    actor: Actor,
    role: Pick<AwsRoleRow, 'id' | 'role_arn'>,
    record?: (trx: Trx, row: AwsRoleRow, now: number) => void,
  ): Promise<AwsRole> {
    const result = await verifyRole(actor.workspaceId, role.role_arn)
    return transaction(db, async (trx) => {
      const now = clock.now()
      const row = await updateRole(trx, role.id, toVerification(result, now))
      if (row === undefined) throw createNoSuchRoleError()
      record?.(trx, row, now)
      return presentRole(row)
    })
  }

  const insert = (actor: Actor, { roleArn, profile }: ConnectRoleRequest) =>
    transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const roles = await listRoles(trx, actor.workspaceId)
      const decision = decideConnection(roles, { roleArn, profile })
      if ('existing' in decision) return { row: decision.existing, isNew: false }
      await assertOpen(trx, actor.workspaceId)
      const row = createRoleRow(actor, { roleArn, profile: decision.profile }, now)
      await insertRole(trx, row)
      recordConnection(trx, actor, row, now)
      // AWS may need some seconds to respond.
      recordCredentialChange(trx, { workspaceId: actor.workspaceId })
      return { row, isNew: true }
    })

  const disconnectOnce = (actor: Actor, id: string): Promise<void> =>
    transaction(db, async (trx) => {
      const at = clock.now()
      await confirmActor(trx, actor, at)
      const role = await requireRole(trx, actor, id)
      await deleteRole(trx, role.id)
      await recordDeletion(trx, actor, role.id, at)
      const detail = describeRole(role)
      recordAuditEvent(trx, { kind: 'aws_role.disconnect', actor, boxId: null, detail, at })
      recordCredentialChange(trx, { workspaceId: actor.workspaceId })
    })

  return {
    async list({ workspaceId }) {
      const roles = await listRoles(db, workspaceId)
      return {
        enabled: issuer.url !== null,
        missing: availability.missing,
        quickConnect: availability.quickConnect !== null,
        issuer: issuer.url,
        audience: AUDIENCE,
        workspaceId,
        subjectPattern: getSubjectPattern(workspaceId),
        tokenPath: AWS_TOKEN_PATH,
        limit: LIMITS.awsRoles,
        roles: roles.map(presentRole),
      }
    },

    async connect(actor, request) {
      assertEnabled()
      countVerification(actor)
      const { row, isNew } = await insert(actor, request)
      // The coordinator may have stopped before the role was verified.
      const isVerified = row.verified_at !== null || row.verify_error !== null
      return { role: isVerified ? presentRole(row) : await verifyStored(actor, row), isNew }
    },

    async verify(actor, id) {
      assertEnabled()
      const role = await requireRole(db, actor, id)
      countVerification(actor)
      return verifyStored(actor, role, (trx, row, at) =>
        recordAuditEvent(trx, {
          kind: 'aws_role.verify',
          actor,
          boxId: null,
          detail: { ...describeRole(row), verified: row.verified_at !== null },
          at,
        }),
      )
    },

    disconnect: (actor, id) => repeatDeletion(db, actor, id, () => disconnectOnce(actor, id)),
  }
}

export const createRoleRow = (
  actor: Actor,
  { roleArn, profile }: { roleArn: string; profile: string },
  now: number,
): AwsRoleRow => ({
  id: newId('awsRole'),
  workspace_id: actor.workspaceId,
  role_arn: roleArn,
  profile,
  verified_at: null,
  verified_arn: null,
  verify_error: null,
  created_by: formatActor(actor),
  created_at: now,
})

export function recordConnection(trx: Trx, actor: Actor, row: AwsRoleRow, at: number): void {
  recordAuditEvent(trx, { kind: 'aws_role.connect', actor, boxId: null, detail: describeRole(row), at })
}

const describeRole = ({ id, role_arn, profile }: AwsRoleRow) => ({ roleId: id, roleArn: role_arn, profile })

async function requireRole(db: Db | Trx, { workspaceId }: Actor, id: string): Promise<AwsRoleRow> {
  const role = isId('awsRole', id) ? await findRole(db, workspaceId, id) : undefined
  if (role === undefined) throw createNoSuchRoleError()
  return role
}

const createNoSuchRoleError = () =>
  new ApiError('not_found', 'The workspace has no such AWS role. GET /aws-roles lists the ids.')
