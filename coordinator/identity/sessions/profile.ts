// What users change about themselves: their name and, as owners, their email address.
import type { IssuedCode, SignedInUser } from '../../../shared/api/sessions.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Db } from '../../db/open.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { confirmActor } from '../confirm-actor.ts'
import type { Mailer } from '../mail/mailer.ts'
import { findMembership, listMemberships, type Membership } from '../store/members.ts'
import { updateUser } from '../store/users.ts'
import { type Codes, createInvalidCodeError } from './codes.ts'
import { createCodeMail, createEmailChangedMail } from './mails.ts'
import { presentUser } from './present.ts'
import type { ClientLimiter } from './rate-limits.ts'

export type ProfileService = {
  rename(actor: Actor, name: string): Promise<SignedInUser>
  /** Sends a code to the new address. */
  requestEmail(actor: Actor, email: string): Promise<IssuedCode>
  confirmEmail(actor: Actor, attempt: { id: string; code: string }): Promise<SignedInUser>
}

export type ProfileOptions = {
  db: Db
  clock: Clock
  codes: Codes
  limiter: ClientLimiter
  mailer: Mailer
  background: BackgroundTasks
}

export function createProfileService(options: ProfileOptions): ProfileService {
  const { db, clock, codes, limiter, mailer, background } = options

  /** @throws ApiError unauthorized when the user has been removed meanwhile */
  async function find(trx: Trx, userId: string | null): Promise<Membership> {
    const user = userId === null ? undefined : await findMembership(trx, userId)
    if (user === undefined) throw new ApiError('unauthorized')
    return user
  }

  const record = (trx: Trx, actor: Actor, user: Membership, change: Record<string, string>) =>
    recordAuditEvent(trx, {
      kind: 'member.update',
      actor,
      boxId: null,
      detail: { userId: user.id, ...change },
      at: clock.now(),
    })

  return {
    rename: (actor, name) =>
      transaction(db, async (trx) => {
        const user = await find(trx, actor.userId)
        await updateUser(trx, user.id, { name })
        record(trx, actor, user, { name })
        return presentUser({ ...user, name })
      }),

    async requestEmail(actor, email) {
      const client = `user ${actor.userId}`
      limiter.count('requestCode', client)
      const issued = await codes.exclusively(async (trx) => {
        const user = await find(trx, actor.userId)
        return codes.issue(trx, email, { userId: user.id }, client)
      })
      background.run('send a code', () => mailer.send(createCodeMail('email', email, issued.code)))
      return { id: issued.id, expiresAt: toTimestamp(issued.expiresAt) }
    },

    async confirmEmail(actor, attempt) {
      const outcome = await codes.exclusivelyFor(attempt.id, 'user', async (trx) => {
        const user = await find(trx, actor.userId)
        const redemption = await codes.redeem(trx, attempt, 'user')
        if ('rejected' in redemption || redemption.redeemed.user_id !== user.id) return null
        const { email } = redemption.redeemed
        await confirmActor(trx, actor, clock.now())
        const others = await listMemberships(trx, email)
        if (others.some(({ id, workspace_id }) => workspace_id === user.workspace_id && id !== user.id))
          throw new ApiError('member_exists')
        await updateUser(trx, user.id, { email })
        record(trx, actor, user, { email })
        return { user, email }
      })
      if (outcome === null || 'rejected' in outcome) {
        limiter.count('wrongCode', `user ${actor.userId}`)
        throw createInvalidCodeError()
      }
      const { user, email } = outcome
      if (user.email !== null && user.email !== email) {
        const mail = createEmailChangedMail(user.email, email)
        background.run('send a notification', () => mailer.send(mail))
      }
      return presentUser({ ...user, email })
    },
  }
}
