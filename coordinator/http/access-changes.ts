// Notifies of changes of what credentials may do.
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'

/** A change of what credentials may do. Without `userId` and `credentialId`, it affects all credentials of the workspace. */
export type AccessChange = {
  workspaceId: string
  /** All credentials of this user. */
  userId?: string
  /** A key, a session or a ticket. The change of a session affects its tickets too. */
  credentialId?: string
}

const ACCESS = defineTopic<AccessChange>('access')

/**
 * Lets the affected open requests be checked again after the commit (open-requests.ts). Call it when a credential is revoked,
 * rotated or limited, a session ends, a user is removed or gets another role, or a workspace is closed or reopened.
 */
export const recordAccessChange = (trx: Trx, change: AccessChange): void => notify(trx, ACCESS, change)

/** See subscribe(). */
export const subscribeToAccessChanges = (
  db: Db,
  listener: (change: AccessChange) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, ACCESS, listener, options)
