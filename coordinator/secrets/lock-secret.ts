// Locks a secret with the boxes of its mounts.
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { listMountsOfSecret, type MountWithBox } from './mount-store.ts'
import { findSecret, lockSecret, type SecretFields } from './store.ts'

export type LockedSecret = {
  trx: Trx
  secret: SecretFields
  mounts: MountWithBox[]
  now: number
  box: BoxRow | null
}

export type WithSecret = <T>(
  target: { actor: Actor; id: string; granteeBoxId?: string | undefined },
  run: (locked: LockedSecret) => Promise<T>,
) => Promise<T>

export type SecretLockOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'lockLive'>
  confirmActor: ConfirmActor
}

/**
 * Runs the function with the secret and the boxes of its mounts locked. A box is locked before its workspace, so the
 * transaction starts again when the secret was mounted on another box before the workspace was locked.
 * @param granteeBoxId a box that is locked too
 */
export function createSecretLock({ db, clock, boxes, confirmActor }: SecretLockOptions): WithSecret {
  return async ({ actor, id, granteeBoxId }, run) => {
    for (;;) {
      const result = await transaction(db, async (trx) => {
        if (!(await findSecret(trx, actor.workspaceId, id))) throw createNoSuchSecretError()
        const ids = new Set((await listMountsOfSecret(trx, id)).map(({ box_id }) => box_id))
        let box: BoxRow | null = null
        for (const boxId of [
          ...new Set([...ids, ...(granteeBoxId === undefined ? [] : [granteeBoxId])]),
        ].sort())
          if (boxId === granteeBoxId) box = await boxes.lockLive(trx, actor, boxId)
          else await lockBox(trx, boxId)
        const now = clock.now()
        await confirmActor(trx, actor, now)
        const secret = await requireSecret(trx, actor, id)
        const mounts = await listMountsOfSecret(trx, id)
        if (!mounts.every(({ box_id }) => ids.has(box_id))) return null
        return { value: await run({ trx, secret, mounts, now, box }) }
      })
      if (result !== null) return result.value
    }
  }
}

export const createNoSuchSecretError = (): ApiError =>
  new ApiError('not_found', 'No such secret. GET /api/v1/secrets lists the ids of all secrets.')

/** Locks the secret. */
export async function requireSecret(trx: Trx, actor: Actor, id: string): Promise<SecretFields> {
  const secret = await lockSecret(trx, actor.workspaceId, id)
  if (!secret) throw createNoSuchSecretError()
  return secret
}
