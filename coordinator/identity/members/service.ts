// The members of a workspace (spec §2.3, §5.7, §5.11): list, invite, change and remove.

import type { Invitation, InviteRequest, Member, UpdateMemberRequest } from '../../../shared/api/members.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { formatCount } from '../../../shared/format-count.ts'
import { isId, newId } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { Db } from '../../db/open.ts'
import type { UserRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { recordAccessChange } from '../../http/access-changes.ts'
import type { Actor } from '../../http/actor.ts'
import type { RemovedMember } from '../../http/module.ts'
import { confirmActor } from '../confirm-actor.ts'
import { endSessionsOfUser } from '../sessions/end-sessions.ts'
import { revokeKeysOfUser } from '../store/keys.ts'
import {
  findCreationOfNewestUser,
  findMember,
  hasMemberWithEmail,
  hasOtherOwner,
  isRemovedMember,
  listMembers,
  type MemberRow,
} from '../store/members.ts'
import { insertMember, updateUser } from '../store/users.ts'
import { endTicketsOfUser } from '../tickets/end-tickets.ts'
import { assertOpen } from '../workspaces/service.ts'
import { type InvitationMail, writeInvitation } from './invitation.ts'

export type MemberServiceOptions = {
  db: Db
  clock: Clock
  /** null: the coordinator sends no mail. */
  sendMail: ((mail: InvitationMail & { workspaceId: string }) => Promise<unknown>) | null
  /** The origin at which clients reach the coordinator. */
  publicUrl: string
  /**
   * Restricts the boxes of a user who becomes a contractor. Locks the boxes, so it runs before the lock on the workspace: a
   * box is locked before its workspace, never after it.
   */
  restrictBoxesOf(
    trx: Trx,
    workspaceId: string,
    userId: string,
    by: { actor: Actor; now: number },
  ): Promise<void>
  /** Whether the user has boxes that restrictBoxesOf() would restrict. Locks nothing. */
  hasUnrestrictedBoxes(trx: Trx, workspaceId: string, userId: string): Promise<boolean>
  /** Removes what only the membership allows. Locks boxes, like restrictBoxesOf(). */
  onRemove?(trx: Trx, member: RemovedMember): Promise<void>
}

/** Throws not_found for an id that is unknown or malformed. */
export type MemberService = {
  /** Oldest first. */
  list(actor: Actor): Promise<Member[]>
  /** Throws member_exists, workspace_closing, or rate_limited. */
  invite(actor: Actor, input: InviteRequest): Promise<Invitation>
  /** Throws last_owner, or bad_request without a field. */
  update(actor: Actor, id: string, input: UpdateMemberRequest): Promise<Member>
  /** Revokes the credentials of the member. Idempotent. Throws last_owner; not_allowed or not_owner for another member. */
  remove(actor: Actor, id: string): Promise<void>
}

/** The user has created a box after restrictBoxesOf() and before the lock on the workspace. */
class BoxCreatedError extends Error {
  override name = 'BoxCreatedError'
}

const DAY_MS = 24 * 60 * 60 * 1000

export function createMemberService(options: MemberServiceOptions): MemberService {
  const { db, clock, sendMail, publicUrl, onRemove } = options
  const { restrictBoxesOf, hasUnrestrictedBoxes } = options

  async function invite(actor: Actor, { email, name, role }: InviteRequest): Promise<Invitation> {
    const { workspaceId } = actor
    const { member, mail } = await transaction(db, async (trx) => {
      const now = clock.now()
      const workspace = await confirmActor(trx, actor, now)
      if (await hasMemberWithEmail(trx, workspaceId, email)) throw new ApiError('member_exists')
      await assertOpen(trx, workspaceId)
      await assertBelowInvitationLimit(trx, workspaceId, now)
      const row: UserRow = {
        id: newId('user'),
        workspace_id: workspaceId,
        email,
        name: name ?? getDefaultName(email),
        role,
        created_at: now,
        joined_at: null,
        removed_at: null,
      }
      if (!(await insertMember(trx, row))) throw new ApiError('member_exists')
      recordAuditEvent(trx, {
        kind: 'member.invite',
        actor,
        boxId: null,
        at: now,
        detail: { userId: row.id, email, role },
      })
      return {
        member: presentMember({ ...row, key_used_at: null }),
        mail: writeInvitation({ email, workspaceName: workspace.name, role, publicUrl }),
      }
    })
    // The sender logs failures.
    void sendMail?.({ ...mail, workspaceId })
    return { member, emailed: sendMail !== null }
  }

  async function update(actor: Actor, id: string, input: UpdateMemberRequest): Promise<Member> {
    if (Object.keys(input).length === 0)
      throw new ApiError('bad_request', 'body must have at least one field to change')
    for (;;)
      try {
        return await tryUpdate(actor, id, input)
      } catch (error) {
        if (!(error instanceof BoxCreatedError)) throw error
      }
  }

  /** Throws BoxCreatedError. */
  function tryUpdate(actor: Actor, id: string, input: UpdateMemberRequest): Promise<Member> {
    const { workspaceId } = actor
    return transaction(db, async (trx) => {
      assertMemberId(id)
      const now = clock.now()
      // Boxes are locked before the workspace. The transaction reverts this change when the update fails.
      if (input.role === 'contractor') await restrictBoxesOf(trx, workspaceId, id, { actor, now })
      await confirmActor(trx, actor, now)
      if (input.role === 'contractor' && (await hasUnrestrictedBoxes(trx, workspaceId, id)))
        throw new BoxCreatedError()
      const row = await requireMember(trx, workspaceId, id)
      const changes = listChanges(row, input)
      if (Object.keys(changes).length === 0) return presentMember(row)
      if (changes.role !== undefined) {
        await assertNotLastOwner(trx, row)
        recordAccessChange(trx, { workspaceId, userId: id })
      }
      await updateUser(trx, id, changes)
      recordAuditEvent(trx, {
        kind: 'member.update',
        actor,
        boxId: null,
        at: now,
        detail: { userId: id, ...changes, ...(changes.role && { previousRole: row.role }) },
      })
      return presentMember({ ...row, ...changes })
    })
  }

  async function remove(actor: Actor, id: string): Promise<void> {
    const { workspaceId } = actor
    if (actor.userId !== id && actor.role !== 'owner')
      throw new ApiError(
        actor.role === 'contractor' ? 'not_allowed' : 'not_owner',
        'Only an owner may remove other members. Use your own id to leave the workspace.',
      )
    assertMemberId(id)
    await transaction(db, async (trx) => {
      await onRemove?.(trx, { actor, userId: id })
      const now = clock.now()
      await confirmActor(trx, actor, now)
      if (await isRemovedMember(trx, workspaceId, id)) return
      const row = await requireMember(trx, workspaceId, id)
      await assertNotLastOwner(trx, row)
      await updateUser(trx, id, { removed_at: now })
      await revokeKeysOfUser(trx, id, now)
      await endTicketsOfUser(trx, id)
      await endSessionsOfUser(trx, id)
      recordAuditEvent(trx, {
        kind: 'member.remove',
        actor,
        boxId: null,
        at: now,
        detail: { userId: id, email: row.email, role: row.role },
      })
      recordAccessChange(trx, { workspaceId, userId: id })
    })
  }

  return {
    list: async ({ workspaceId }) => (await listMembers(db, workspaceId)).map(presentMember),
    invite,
    update,
    remove,
  }
}

export const presentMember = (row: MemberRow): Member => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role,
  status: row.joined_at === null ? 'invited' : 'active',
  createdAt: toTimestamp(row.created_at),
  joinedAt: toTimestampOrNull(row.joined_at),
  lastActiveAt: toTimestampOrNull(Math.max(row.last_active_at ?? 0, row.key_used_at ?? 0) || null),
})

const getDefaultName = (email: string): string =>
  email.slice(0, email.indexOf('@')).slice(0, LIMITS.memberNameChars)

const createNotFoundError = () =>
  new ApiError('not_found', 'The workspace has no such member. GET /api/v1/members lists the members.')

/** @throws ApiError not_found */
function assertMemberId(id: string): void {
  if (!isId('user', id)) throw createNotFoundError()
}

async function requireMember(trx: Trx, workspaceId: string, id: string): Promise<MemberRow> {
  const row = await findMember(trx, workspaceId, id)
  if (!row) throw createNotFoundError()
  return row
}

/** An invited owner does not count: the invitation may never be accepted. */
async function assertNotLastOwner(trx: Trx, row: MemberRow): Promise<void> {
  if (row.role !== 'owner' || row.joined_at === null) return
  if (!(await hasOtherOwner(trx, row.workspace_id, row.id))) throw new ApiError('last_owner')
}

async function assertBelowInvitationLimit(trx: Trx, workspaceId: string, now: number): Promise<void> {
  const limit = LIMITS.invitations
  const createdAt = await findCreationOfNewestUser(trx, workspaceId, limit, now - DAY_MS)
  if (createdAt === undefined) return
  throw new ApiError(
    'rate_limited',
    `The workspace has invited ${formatCount(limit, 'member')} in the last 24 hours. Try again after Retry-After seconds.`,
    { headers: { 'retry-after': String(Math.ceil((createdAt + DAY_MS - now) / 1000)) } },
  )
}

/** The fields that differ. */
const listChanges = (
  row: MemberRow,
  { role, name }: UpdateMemberRequest,
): Partial<Pick<UserRow, 'role' | 'name'>> => ({
  ...(role !== undefined && role !== row.role && { role }),
  ...(name !== undefined && name !== row.name && { name }),
})
