// Notifies the schedulers of schedules that are due before they are listed again.
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'

const DUE_TIMES = defineTopic<{ dueAt: number }>('due times')

/** Call it after writing a schedule that is due at this time, in milliseconds since the epoch. */
export const recordDueTime = (trx: Trx, dueAt: number): void => notify(trx, DUE_TIMES, { dueAt })

/** See subscribe(). */
export const subscribeToDueTimes = (
  db: Db,
  listener: (dueAt: number) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, DUE_TIMES, ({ dueAt }) => listener(dueAt), options)
