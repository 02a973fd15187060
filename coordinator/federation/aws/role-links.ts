// Links that connect a role: a stack in the console of AWS creates it, and calls back with the secret of the link (spec §4.6).
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type {
  AwsConnect,
  AwsConnectCallback,
  AwsConnectResult,
  CreateAwsConnectRequest,
} from '../../../shared/api/federation.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId, newId } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import { lockWorkspace } from '../../db/lock-workspace.ts'
import type { Db } from '../../db/open.ts'
import type { AwsConnectRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import type { ConfirmActor } from '../../identity/confirm-actor.ts'
import { findKey, findRole as findRoleOfUser } from '../../identity/lookups.ts'
import { assertOpen } from '../../identity/workspaces/service.ts'
import { getSubjectPattern, type Issuer } from '../issuer/issuer.ts'
import type { Availability } from './availability.ts'
import { recordCredentialChange } from './credential-changes.ts'
import { toVerification } from './present.ts'
import { createQuickCreateUrl } from './quick-create.ts'
import {
  deleteRoleLink,
  deleteRoleLinksExpiredBefore,
  findRoleLink,
  replaceRoleLink,
  spendRoleLink,
} from './role-link-store.ts'
import { insertRole, listRoles, updateRole } from './role-store.ts'
import { createRoleRow, recordConnection, type VerifyRole } from './roles.ts'
import { AUDIENCE, assertProfileIsFree, assertRoomForRole, decideConnection } from './rules.ts'

/** Callbacks of a link at once, and per second. Each sends a request to AWS. */
const CALLBACKS = { capacity: 40, perSecond: 0.2 }
const PRUNE_BATCH_SIZE = 500
/** A spent link expires when it is used. */
const LIFETIME_MS = LIMITS.awsConnectSeconds * 1000
/** A stack that has not received the response repeats its request within minutes. */
const KEPT_AFTER_EXPIRY_MS = 3_600_000

export type RoleLinks = {
  /** Throws aws_federation_disabled, aws_quick_connect_unavailable, profile_taken, aws_roles_limit, workspace_closing. */
  create(actor: Actor, request: CreateAwsConnectRequest): Promise<AwsConnect>
  /** Throws not_found for a link that is spent, expired or cancelled. */
  cancel(actor: Actor, id: string): Promise<void>
  /**
   * Connects the role when AWS confirms that the workspace can assume it. Until then the link stays valid: a new role takes
   * some seconds to work everywhere. Idempotent: a repeated request gets the same response, because the stack deletes the role
   * when it gets an error.
   * @throws ApiError not_found, rate_limited
   */
  complete(callback: AwsConnectCallback): Promise<AwsConnectResult>
  /** @param signal aborts between two transactions */
  prune(signal: AbortSignal): Promise<number>
}

export type RoleLinksOptions = {
  db: Db
  clock: Clock
  issuer: Pick<Issuer, 'url'>
  availability: Availability
  /** null: the default region of the console. */
  region: string | null
  confirmActor: ConfirmActor
  verifyRole: VerifyRole
  /** Called after the commit of a change of the roles of a workspace. */
}

export function createRoleLinks(options: RoleLinksOptions): RoleLinks {
  const { db, clock, issuer, availability, region, confirmActor, verifyRole } = options
  const callbacks = createTokenBuckets(clock, CALLBACKS)

  function requireQuickConnect() {
    if (issuer.url === null) throw new ApiError('aws_federation_disabled')
    if (availability.quickConnect === null) throw new ApiError('aws_quick_connect_unavailable')
    return { issuer: issuer.url, ...availability.quickConnect }
  }

  async function create(actor: Actor, { profile }: CreateAwsConnectRequest): Promise<AwsConnect> {
    const { issuer, templateUrl, callbackUrl } = requireQuickConnect()
    const token = randomBytes(32).toString('base64url')
    const row = createConnectRow(actor, { token, profile, now: clock.now() })
    await transaction(db, async (trx) => {
      await confirmActor(trx, actor, row.created_at)
      const roles = await listRoles(trx, actor.workspaceId)
      assertRoomForRole(roles)
      if (profile !== undefined) assertProfileIsFree(roles, profile)
      await assertOpen(trx, actor.workspaceId)
      await replaceRoleLink(trx, row)
      record(trx, 'aws_connect.create', actor, row)
    })
    const url = createQuickCreateUrl({
      templateUrl,
      region,
      stackName: `boxwood-${row.id.replace('_', '-')}`,
      parameters: {
        Issuer: issuer,
        Audience: AUDIENCE,
        SubjectPattern: getSubjectPattern(actor.workspaceId),
        CallbackUrl: callbackUrl,
        ConnectId: row.id,
        ConnectToken: token,
      },
    })
    return { id: row.id, url, expiresAt: toTimestamp(row.expires_at) }
  }

  const cancel = (actor: Actor, id: string) =>
    transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const link = { id, workspace_id: actor.workspaceId }
      if (!isId('awsConnect', id) || !(await deleteRoleLink(trx, link, now))) throw createInvalidLinkError()
      record(trx, 'aws_connect.cancel', actor, { id, created_at: now })
    })

  /**
   * Finds also a link that is spent or has expired.
   * @throws ApiError not_found: also when the creator is not an owner any more, or the key of the creator was revoked
   */
  async function requireLink(
    db: Db | Trx,
    { id, token }: Pick<AwsConnectCallback, 'id' | 'token'>,
  ): Promise<{ link: AwsConnectRow; actor: Actor }> {
    const link = isId('awsConnect', id) ? await findRoleLink(db, id) : undefined
    if (link === undefined || !isSameHash(link.token_hash, hashSecret(token))) throw createInvalidLinkError()
    const role = await findRoleOfUser(db, link.user_id)
    const credential = await findCredential(db, link)
    if (role !== 'owner' || credential === undefined) throw createInvalidLinkError()
    const { workspace_id: workspaceId, user_id: userId } = link
    return { link, actor: { credential, workspaceId, userId, role, boxIds: null, access: null } }
  }

  const isExpired = (link: AwsConnectRow): boolean => link.expires_at <= clock.now()

  /** The stack may not have received the response. Throws not_found unless the link has connected the role. */
  async function repeatResult(db: Db | Trx, link: AwsConnectRow, roleArn: string): Promise<AwsConnectResult> {
    const isSpent = link.expires_at < link.created_at + LIFETIME_MS
    const roles = isSpent ? await listRoles(db, link.workspace_id) : []
    if (!roles.some((role) => role.role_arn === roleArn && role.verified_at !== null))
      throw createInvalidLinkError()
    return { connected: true, message: null }
  }

  async function complete({ id, token, roleArn }: AwsConnectCallback): Promise<AwsConnectResult> {
    const { link } = await requireLink(db, { id, token })
    const waitMs = callbacks.take(id)
    if (waitMs > 0) rejectLimited(waitMs, 'The link was used too often.')
    if (isExpired(link)) return repeatResult(db, link, roleArn)
    const result = await verifyRole(link.workspace_id, roleArn)
    if ('error' in result) return { connected: false, message: result.error }
    return transaction(db, async (trx) => {
      await lockWorkspace(trx, link.workspace_id)
      // The link may have been cancelled or used during the verification.
      const { link: current, actor } = await requireLink(trx, { id, token })
      if (isExpired(current)) return repeatResult(trx, current, roleArn)
      await assertOpen(trx, link.workspace_id)
      const now = clock.now()
      const decision = decideConnection(await listRoles(trx, link.workspace_id), {
        roleArn,
        ...(link.profile !== null && { profile: link.profile }),
      })
      if ('existing' in decision) await updateRole(trx, decision.existing.id, toVerification(result, now))
      else {
        const row = { ...createRoleRow(actor, { roleArn, ...decision }, now), ...toVerification(result, now) }
        await insertRole(trx, row)
        recordConnection(trx, actor, row, now)
      }
      await spendRoleLink(trx, link.id, now)
      recordCredentialChange(trx, { workspaceId: link.workspace_id })
      return { connected: true, message: null }
    }).catch(describeRefusal)
  }

  return {
    create,
    cancel,
    complete,
    prune(signal) {
      const before = clock.now() - KEPT_AFTER_EXPIRY_MS
      return deleteInBatches(db, (trx) => deleteRoleLinksExpiredBefore(trx, before, PRUNE_BATCH_SIZE), signal)
    },
  }
}

/** The stack repeats its request, and shows the message when it stops. */
function describeRefusal(error: unknown): AwsConnectResult {
  if (error instanceof ApiError && error.code !== 'not_found')
    return { connected: false, message: error.message }
  throw error
}

function createConnectRow(
  actor: Actor,
  { token, profile, now }: { token: string; profile: string | undefined; now: number },
): AwsConnectRow {
  const { credential, userId } = actor
  // The access of the route admits owners only: an owner is a user, and tickets are not accepted.
  if (userId === null || credential.type === 'ticket') throw new ApiError('not_owner')
  return {
    id: newId('awsConnect'),
    workspace_id: actor.workspaceId,
    token_hash: hashSecret(token),
    profile: profile ?? null,
    user_id: userId,
    credential_type: credential.type,
    credential_id: credential.id,
    created_at: now,
    expires_at: now + LIFETIME_MS,
  }
}

/**
 * The credential with which the link was created. A session may have ended meanwhile: the user has signed out, which revokes
 * nothing else. undefined: the key was revoked.
 */
async function findCredential(
  db: Db | Trx,
  { credential_type: type, credential_id: id, expires_at: expiresAt }: AwsConnectRow,
): Promise<Actor['credential'] | undefined> {
  if (type === 'session') return { type: 'session', id, expiresAt }
  const key = await findKey(db, id)
  if (key === undefined || key.revoked_at !== null) return undefined
  return { type: 'key', kind: key.kind, id, expiresAt, isUnverified: false }
}

function record(
  trx: Trx,
  kind: 'aws_connect.create' | 'aws_connect.cancel',
  actor: Actor,
  { id, created_at: at }: Pick<AwsConnectRow, 'id' | 'created_at'>,
): void {
  recordAuditEvent(trx, { kind, actor, boxId: null, detail: { connectId: id }, at })
}

const isSameHash = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a), Buffer.from(b))

const createInvalidLinkError = () =>
  new ApiError('not_found', 'The link was used, has expired or was cancelled. Create another one.')
