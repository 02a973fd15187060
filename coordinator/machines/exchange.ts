// The exchange of an enrollment token: the agent of a machine becomes the agent of a new box.

import type { EnrollRequest, EnrollResponse } from '../../shared/api/machines.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { isEnrollmentToken } from '../../shared/enrollment-token.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Admit } from '../admission/admit.ts'
import { recordAuditEvent } from '../audit/service.ts'
import { insertMachine } from '../boxes/insert-machine.ts'
import { findBox } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, EnrollmentRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { hashSecret } from '../http/hash-secret.ts'
import { findRole } from '../identity/lookups.ts'
import { chooseTier } from './choose-tier.ts'
import { assertMayEnroll } from './rules.ts'
import { lockEnrollmentByHash, updateEnrollment } from './store.ts'
import { toBoxName } from './to-box-name.ts'

/**
 * Idempotent for one agent: the same `agentTokenHash` gets the same response, also when the first one was lost.
 * @throws ApiError unauthorized, token_expired, name_taken, not_allowed, policy_denied, and the refusals of `admit`. The
 *   installer prints the message.
 */
export type ExchangeToken = (input: EnrollRequest) => Promise<EnrollResponse>

const CREATE_ANOTHER = 'Create another one with `box machine add`.'

const refuseToken = (problem: string, fields: Record<string, unknown> = {}): ApiError =>
  new ApiError('unauthorized', `${problem} ${CREATE_ANOTHER}`, { fields })

export function createExchange(options: {
  db: Db
  clock: Clock
  admit: Admit
  /** 0 or more, less than 1. Selects the fruit that names a box. Default: Math.random. */
  random?: () => number
}): ExchangeToken {
  const { db, clock, admit, random } = options

  return async (input) => {
    if (!isEnrollmentToken(input.token))
      throw new ApiError(
        'unauthorized',
        'The token is incomplete or mistyped. Copy the whole line that `box machine add` has printed.',
      )
    return transaction(db, async (trx) => {
      const enrollment = await lockEnrollmentByHash(trx, hashSecret(input.token))
      if (!enrollment) throw refuseToken('This coordinator does not know the token.')
      if (enrollment.used_at !== null) return repeatResponse(trx, enrollment, input)
      if (enrollment.revoked_at !== null) throw refuseToken('The token has been revoked.')
      const now = clock.now()
      if (enrollment.expires_at <= now)
        throw new ApiError(
          'token_expired',
          `The token expired at ${toTimestamp(enrollment.expires_at)}. ${CREATE_ANOTHER}`,
          { fields: { expiresAt: toTimestamp(enrollment.expires_at) } },
        )
      const actor = await findCreator(trx, enrollment)
      await assertMayEnroll(trx, actor)
      const tier = chooseTier(input)
      await admit(trx, actor, { action: 'enroll', tier })
      const machine = {
        actor,
        tier,
        now,
        region: enrollment.region,
        envVars: enrollment.env_vars,
        name: enrollment.name ?? undefined,
        preferredName: toBoxName(input.hostname),
        restricted: enrollment.restricted === 1,
        agentTokenHash: input.agentTokenHash,
      }
      const box = await insertMachine(trx, machine, random)
      const { agentTokenHash } = input
      await updateEnrollment(trx, enrollment.id, {
        used_at: now,
        agent_token_hash: agentTokenHash,
        box_id: box.id,
      })
      recordEnrollment(trx, { enrollment, actor, box, input, now })
      return { boxId: box.id, name: box.hostname }
    })
  }
}

/**
 * The token may have been used by this agent, which has not received the response. Does not lock the box: a box is locked
 * before its workspace, which this transaction has locked. The agent of a box that is deleted meanwhile cannot connect.
 */
async function repeatResponse(
  trx: Trx,
  { used_at: usedAt, agent_token_hash: usedBy, box_id: boxId }: EnrollmentRow,
  { agentTokenHash }: EnrollRequest,
): Promise<EnrollResponse> {
  const box = boxId === null ? undefined : await findBox(trx, boxId)
  const isDeleted = box === undefined || box.desired_state === 'terminated'
  const used = `The token was used at ${toTimestamp(usedAt ?? 0)}`
  if (isDeleted) throw refuseToken(`${used}, for a box that has been deleted.`)
  if (usedBy !== agentTokenHash) throw refuseToken(`${used}, for box ${box.hostname}. A token works once.`)
  return { boxId: box.id, name: box.hostname }
}

/** The creator of the token, with the role that the user has now. */
async function findCreator(trx: Trx, enrollment: EnrollmentRow): Promise<Actor> {
  const { workspace_id: workspaceId, user_id: userId, credential_id: id } = enrollment
  const { credential_kind: kind, expires_at: expiresAt } = enrollment
  // Earlier versions accepted keys, also such without a user.
  if (kind !== 'session' || userId === null)
    throw refuseToken('The token was created with an API key, which this version does not accept.')
  const role = await findRole(trx, userId)
  if (role === undefined) throw refuseToken('The user who created the token is not a member any more.')
  const credential = { type: 'session', id, expiresAt } as const
  return { credential, workspaceId, userId, role, boxIds: null, access: null }
}

type EnrollmentEvent = {
  enrollment: EnrollmentRow
  actor: Actor
  box: BoxRow
  input: EnrollRequest
  now: number
}

function recordEnrollment(trx: Trx, { enrollment, actor, box, input, now }: EnrollmentEvent): void {
  const { hostname, platform } = input
  const { tier, region, id: boxId } = box
  const detail = { name: box.hostname, enrollmentId: enrollment.id, hostname, platform, tier, region }
  recordAuditEvent(trx, { kind: 'machine.enroll', actor, boxId, detail, at: now })
}
