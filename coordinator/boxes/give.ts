// Gives a box to another member: the new owner is charged for it, and grants and policies of that member apply.
import type { Box, GiveBoxRequest } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Admit } from '../admission/admit.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, UserRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { recordAccessChange } from '../http/access-changes.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { ModuleRegistry } from '../http/module.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { findMember, findMemberByEmail } from '../identity/lookups.ts'
import type { BoxSecrets } from './box-hooks.ts'
import { presentBox } from './present.ts'
import { restrictBox } from './restrict-boxes.ts'
import { updateBox } from './store/boxes.ts'
import { recordStateChange } from './store/events.ts'
import { setOwnerOfSnapshots } from './store/snapshots.ts'

export type GiveOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'lockLive'>
  admit: Admit
  confirmActor: ConfirmActor
  modules: Pick<ModuleRegistry, 'restrictBox'>
  boxSecrets: Pick<BoxSecrets, 'onOwnerChange'>
}

/** Throws not_owner, member_not_found, policy_denied. No-op when the member has the box. */
export type GiveBox = (actor: Actor, id: string, receiver: GiveBoxRequest, trx?: Trx) => Promise<Box>

export function createGiveBox(options: GiveOptions): GiveBox {
  const { db, clock, boxes, admit, confirmActor, modules, boxSecrets } = options

  return (actor, id, receiver, trx) =>
    transaction(trx ?? db, async (trx) => {
      const box = await boxes.lockLive(trx, actor, id)
      const now = clock.now()
      await confirmActor(trx, actor, now)
      assertMayGive(box, actor)
      const member = await requireActiveMember(trx, actor.workspaceId, receiver)
      if (member.id === box.owner_user_id) return presentBox(box)
      await admit(
        trx,
        { ...actor, userId: member.id, role: member.role },
        { action: 'give', box, receiverName: member.name },
      )

      if (member.role === 'contractor')
        await restrictBox(trx, modules, box, { actor, now, reason: 'contractor' })
      const given = await updateBox(trx, id, { owner_user_id: member.id, updated_at: now })
      await setOwnerOfSnapshots(trx, id, member.id, now)
      await boxSecrets.onOwnerChange(trx, given, { actor, now })
      const { observed_state: state } = box
      await recordStateChange(trx, id, {
        ...{ from: state, to: state, reason: `given to ${member.name}` },
        ...{ actor: formatActor(actor), at: now },
      })
      const { email } = member
      const detail = { from: box.owner_user_id, to: member.id, email }
      recordBoxChange(trx, 'box.give', box, { actor, now }, detail)
      const { workspaceId } = actor
      recordAccessChange(trx, { workspaceId, userId: box.owner_user_id })
      return presentBox(given)
    })
}

function assertMayGive({ hostname, owner_user_id: ownerUserId }: BoxRow, { role, userId }: Actor): void {
  if (role === 'owner' || userId === ownerUserId) return
  throw new ApiError(
    'not_owner',
    `Box ${hostname} belongs to another member. Only that member or an owner of the workspace may give it away.`,
  )
}

async function requireActiveMember(
  trx: Trx,
  workspaceId: string,
  { ownerUserId, email }: GiveBoxRequest,
): Promise<UserRow> {
  const member =
    email === undefined
      ? await findMember(trx, workspaceId, ownerUserId ?? '')
      : await findMemberByEmail(trx, workspaceId, email)
  if (!member) throw new ApiError('member_not_found')
  if (member.joined_at !== null) return member
  throw new ApiError(
    'member_not_found',
    `${member.name} has not accepted the invitation to the workspace yet. Give the box away after that.`,
  )
}
