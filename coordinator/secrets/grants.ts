// The grants of secrets to boxes and members (spec §2.8, §4.10).
import type { Grantee, SecretGrant } from '../../shared/api/secrets.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { AuditDetail } from '../audit/service.ts'
import type { BoxRow, SecretGrantRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { recordDeletion, wasDeleted } from '../http/deletions.ts'
import { findMember, findMemberByEmail } from '../identity/lookups.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { deleteGrant, insertGrant, listGrants } from './grant-store.ts'
import type { WithSecret } from './lock-secret.ts'
import { isMember, type MountChanges, removeMountsOfSecret } from './mount-changes.ts'
import type { MountWithBox } from './mount-store.ts'
import { presentGrant } from './present.ts'
import { recordSecretChange } from './record.ts'
import { covers } from './rules.ts'
import { type SecretFields, updateSecret } from './store.ts'

/** Throws not_found for a secret or a box that the actor does not see, and member_not_found. */
export type GrantService = {
  /** Returns the existing grant of the grantee, if there is one. */
  add(actor: Actor, id: string, grantee: Grantee): Promise<SecretGrant>
  /** The scope of the secret stays `granted`: without its last grant, no box may use it. */
  remove(actor: Actor, id: string, grantId: string): Promise<void>
}

export type GrantTarget = Pick<SecretGrantRow, 'box_id' | 'hostname' | 'user_id' | 'email'>

export function createGrantService({
  withSecret,
  changes,
}: {
  withSecret: WithSecret
  changes: Pick<MountChanges, 'remove'>
}): GrantService {
  const add: GrantService['add'] = (actor, id, grantee) =>
    withSecret({ actor, id, granteeBoxId: grantee.boxId }, async ({ trx, secret, mounts, now, box }) => {
      await assertOpen(trx, actor.workspaceId)
      const target = await findTarget(trx, actor, grantee, box)
      const grants = await listGrants(trx, [id])
      const existing = grants.find((grant) => isSameTarget(grant, target))
      if (existing) return presentGrant(existing)
      if (grants.length >= LIMITS.secretGrants)
        throw new ApiError(
          'bad_request',
          `A secret has at most ${LIMITS.secretGrants} grants. Remove a grant first.`,
        )
      const row = await writeGrant(trx, actor, secret, target, now)
      await removeUncovered(trx, mounts, { ...secret, scope: 'granted' }, [...grants, row], { actor, now })
      return presentGrant(row)
    })

  const remove: GrantService['remove'] = (actor, id, grantId) =>
    withSecret({ actor, id }, async ({ trx, secret, mounts, now }) => {
      const grants = await listGrants(trx, [id])
      const grant = grants.find((row) => row.id === grantId)
      if (!grant) {
        if (await wasDeleted(trx, actor, `${id}/${grantId}`)) return
        throw new ApiError(
          'not_found',
          'The secret has no such grant. GET /api/v1/secrets lists the secrets with their grants.',
        )
      }
      await deleteGrant(trx, grantId)
      await recordDeletion(trx, actor, `${id}/${grantId}`, now)
      recordSecretChange(trx, 'secret.ungrant', actor, secret, now, describeGrant(grant), grant.box_id)
      const others = grants.filter((row) => row !== grant)
      await removeUncovered(trx, mounts, secret, others, { actor, now })
    })

  async function removeUncovered(
    trx: Trx,
    mounts: readonly MountWithBox[],
    secret: SecretFields,
    grants: readonly SecretGrantRow[],
    by: { actor: Actor; now: number },
  ): Promise<void> {
    const uncovered: MountWithBox[] = []
    for (const mount of mounts) {
      const box = { id: mount.box_id, owner_user_id: mount.owner_user_id }
      if (!covers(secret, grants, box, await isMember(trx, box))) uncovered.push(mount)
    }
    await removeMountsOfSecret(trx, changes, secret, uncovered, {
      ...by,
      reason: 'no grant covers the box any more',
    })
  }

  return { add, remove }
}

/** From its first grant on, only the boxes that a grant covers may use the secret. */
export async function writeGrant(
  trx: Trx,
  actor: Actor,
  secret: SecretFields,
  target: GrantTarget,
  now: number,
): Promise<SecretGrantRow> {
  const row: SecretGrantRow = {
    id: newId('secretGrant'),
    workspace_id: secret.workspace_id,
    secret_id: secret.id,
    ...target,
    created_by: formatActor(actor),
    created_at: now,
  }
  await insertGrant(trx, row)
  await updateSecret(trx, secret.id, { scope: 'granted' })
  recordSecretChange(trx, 'secret.grant', actor, secret, now, describeGrant(row), row.box_id)
  return row
}

/** @param box the box of the grantee, which is locked */
export async function findTarget(
  trx: Trx,
  { workspaceId }: Actor,
  { userId, email }: Grantee,
  box: BoxRow | null,
): Promise<GrantTarget> {
  if (box) return { box_id: box.id, hostname: box.hostname, user_id: null, email: null }
  const member =
    email === undefined
      ? await findMember(trx, workspaceId, userId ?? '')
      : await findMemberByEmail(trx, workspaceId, email)
  if (!member) throw new ApiError('member_not_found')
  return { box_id: null, hostname: null, user_id: member.id, email: member.email }
}

export const isSameTarget = (
  { box_id, user_id }: Pick<GrantTarget, 'box_id' | 'user_id'>,
  other: Pick<GrantTarget, 'box_id' | 'user_id'>,
): boolean => box_id === other.box_id && user_id === other.user_id

const describeGrant = ({ id, hostname, user_id, email }: SecretGrantRow): AuditDetail => ({
  grantId: id,
  ...(user_id === null ? { hostname } : { userId: user_id, email }),
})
