// Mails to the owners of a workspace about its account. Each mail is a schedule of the owner, which is written in the transaction
// of the change and deleted when the mail is sent: a coordinator that is killed meanwhile sends it after its next start.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { unlessAborted } from '../base/unless-aborted.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { ScheduleHandler } from '../http/module.ts'
import { findUserById, listOwners } from '../identity/lookups.ts'
import type { Mail, Mailer } from '../identity/mail/mailer.ts'
import { findSchedule, lockSchedule, setSchedule } from '../jobs/schedules.ts'
import type { FinanceService, Finances } from './service.ts'

/** The kind of the schedule of each mail. A later mail of the same kind replaces one that is not sent yet. */
export type OwnerMailKind = 'mail_balance' | 'mail_payment_failed'

export type OwnerMail = Pick<Mail, 'subject' | 'text'>

/** The mails are sent after the commit, when the caller calls recordDueTime(). */
export async function scheduleOwnerMails(
  trx: Trx,
  kind: OwnerMailKind,
  { workspaceId, now }: { workspaceId: string; now: number },
): Promise<void> {
  for (const { id } of await listOwners(trx, workspaceId))
    await setSchedule(trx, { kind, target_id: id }, now)
}

export type OwnerMailsOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info'>
  finances: Pick<FinanceService, 'load'>
  mailer: Pick<Mailer, 'send'>
  kind: OwnerMailKind
  /** @returns null: the account has changed again, and there is nothing to report */
  compose(finances: Finances): OwnerMail | null
}

const RETRY_MS = 5 * 60_000

/** The handler of the schedules. Each mail is sent at least once, and again later while the SMTP server is unavailable. */
export function createOwnerMails(options: OwnerMailsOptions): ScheduleHandler {
  const { db, clock, log, finances, mailer, kind, compose } = options

  /** The mail by the account at this moment; null: the user is no owner any more, or there is nothing to report. */
  async function createMail(userId: string): Promise<Mail | null> {
    const user = await findUserById(db, userId)
    if (user?.role !== 'owner' || user.removed_at !== null || user.email === null) return null
    const mail = compose(await transaction(db, (trx) => finances.load(trx, user.workspace_id)))
    if (mail === null) return null
    log.info({ workspaceId: user.workspace_id, userId, subject: mail.subject }, 'sending a mail to an owner')
    return { to: user.email, workspaceId: user.workspace_id, ...mail }
  }

  return async (userId, signal) => {
    const key = { kind, target_id: userId }
    const schedule = await findSchedule(db, key)
    const mail = await createMail(userId)
    const outcome = mail === null ? 'sent' : await unlessAborted(mailer.send(mail), signal)
    return transaction(db, async (trx) => {
      const current = await lockSchedule(trx, key)
      // A change of the account meanwhile has scheduled another mail.
      if (current === undefined || current.due_at !== schedule?.due_at) return current?.due_at
      const retryAt = outcome === 'unavailable' ? clock.now() + RETRY_MS : null
      await setSchedule(trx, key, retryAt)
      return retryAt ?? undefined
    })
  }
}
