// Creates, lists and revokes the tokens that enroll machines, and deletes expired ones.
import type {
  CreateEnrollmentRequest,
  CreateEnrollmentResponse,
  Enrollment,
} from '../../shared/api/machines.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { newEnrollmentToken } from '../../shared/enrollment-token.ts'
import { ApiError } from '../../shared/errors.ts'
import { isId, newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Region } from '../../shared/tiers.ts'
import type { Admit } from '../admission/admit.ts'
import { recordAuditEvent } from '../audit/service.ts'
import { serializeEnvVars } from '../boxes/create.ts'
import { assertNameIsFree } from '../boxes/insert-with-name.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import type { EnrollmentRow } from '../db/schema.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { hashSecret } from '../http/hash-secret.ts'
import { confirmActor } from '../identity/confirm-actor.ts'
import { assertMayEnroll } from './rules.ts'
import {
  deleteEnrollmentsExpiredBefore,
  insertEnrollment,
  listOpenEnrollments,
  lockEnrollment,
  updateEnrollment,
} from './store.ts'

export type Enrollments = {
  /**
   * @param coordinatorUrl the origin at which the machine reaches the coordinator
   * @throws ApiError name_taken, policy_denied, rate_limited, invalid_env, environment_too_large, and the refusals of `admit`
   */
  create(
    actor: Actor,
    input: CreateEnrollmentRequest,
    coordinatorUrl: string,
  ): Promise<CreateEnrollmentResponse>
  /** The tokens that can still be used, newest first. */
  list(actor: Actor): Promise<Enrollment[]>
  /** Idempotent. Throws not_found for an unknown token, and for a used one. */
  revoke(actor: Actor, id: string): Promise<void>
  /** Deletes the tokens that expired 30 days ago. Until then, the exchange of one explains why it is refused. */
  prune(signal: AbortSignal): Promise<number>
}

const DAY_MS = 24 * 60 * 60_000
const RETENTION_MS = 30 * DAY_MS
const PRUNE_BATCH_SIZE = 500

const formatCreator = ({ user_id: userId, credential_id: keyId }: EnrollmentRow): string =>
  userId === null ? `key:${keyId}` : `user:${userId}`

const present = (row: EnrollmentRow): Enrollment => ({
  id: row.id,
  name: row.name,
  region: row.region,
  restricted: row.restricted === 1,
  createdBy: formatCreator(row),
  createdAt: toTimestamp(row.created_at),
  expiresAt: toTimestamp(row.expires_at),
})

const createCommand = (coordinatorUrl: string, token: string): string =>
  `curl -fsSL ${coordinatorUrl}/install.sh | sh -s -- --token ${token}`

export function createEnrollments(options: {
  db: Db
  clock: Clock
  admit: Admit
  defaultRegion: Region
}): Enrollments {
  const { db, clock, admit, defaultRegion } = options

  async function create(
    actor: Actor,
    { name, region = defaultRegion, restricted = false, env = {} }: CreateEnrollmentRequest,
    coordinatorUrl: string,
  ): Promise<CreateEnrollmentResponse> {
    const token = newEnrollmentToken()
    const { credential, workspaceId } = actor
    const now = clock.now()
    const row: EnrollmentRow = {
      id: newId('enrollment'),
      workspace_id: workspaceId,
      hash: hashSecret(token),
      user_id: actor.userId,
      credential_id: credential.id,
      credential_kind: credential.type === 'key' ? credential.kind : 'session',
      name: name ?? null,
      region,
      restricted: restricted ? 1 : 0,
      env_vars: serializeEnvVars(env),
      created_at: now,
      expires_at: now + LIMITS.enrollmentSeconds * 1000,
      revoked_at: null,
      used_at: null,
      agent_token_hash: null,
      box_id: null,
    }
    await transaction(db, async (trx) => {
      await assertMayEnroll(trx, actor)
      await confirmActor(trx, actor, now)
      if (name !== undefined) await assertNameIsFree(trx, workspaceId, name)
      await admit(trx, actor, { action: 'enroll', tier: null })
      const open = await listOpenEnrollments(trx, workspaceId, now)
      if (open.length >= LIMITS.openEnrollments)
        throw new ApiError(
          'rate_limited',
          `The workspace has ${open.length} unused tokens for machines. Revoke some with \`box machine rm\`, or wait until they expire.`,
        )
      await insertEnrollment(trx, row)
      const detail = { enrollmentId: row.id, name: row.name, region }
      recordAuditEvent(trx, { kind: 'machine.token_create', actor, boxId: null, detail, at: now })
    })
    return { enrollment: present(row), token, command: createCommand(coordinatorUrl, token) }
  }

  const revoke = (actor: Actor, id: string) =>
    transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const row = isId('enrollment', id) ? await lockEnrollment(trx, id) : undefined
      if (row?.workspace_id !== actor.workspaceId)
        throw new ApiError('not_found', 'No such token. GET /api/v1/machines lists the ids of unused tokens.')
      if (row.used_at !== null)
        throw new ApiError(
          'not_found',
          'This token has been used. Delete the box of the machine instead, with `box rm`.',
        )
      if (row.revoked_at !== null) return
      await updateEnrollment(trx, id, { revoked_at: now })
      const detail = { enrollmentId: id, name: row.name }
      recordAuditEvent(trx, { kind: 'machine.token_revoke', actor, boxId: null, detail, at: now })
    })

  return {
    create,
    list: async ({ workspaceId }) => (await listOpenEnrollments(db, workspaceId, clock.now())).map(present),
    revoke,
    prune(signal) {
      const before = clock.now() - RETENTION_MS
      const deleteSome = (trx: Parameters<typeof deleteEnrollmentsExpiredBefore>[0]) =>
        deleteEnrollmentsExpiredBefore(trx, before, PRUNE_BATCH_SIZE)
      return deleteInBatches(db, deleteSome, signal)
    },
  }
}
