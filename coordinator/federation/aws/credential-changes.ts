// Notifies of changes after which boxes need other credentials for AWS.
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'

/** The roles of a workspace have changed, or the files of a box were copied from another one. */
export type CredentialChange = { workspaceId: string } | { boxId: string }

const CLOUD_CREDENTIALS = defineTopic<CredentialChange>('cloud credentials')

/** The coordinators with the agents of the boxes send the new state after the commit. */
export const recordCredentialChange = (trx: Trx, change: CredentialChange): void =>
  notify(trx, CLOUD_CREDENTIALS, change)

/** See subscribe(). */
export const subscribeToCredentialChanges = (
  db: Db,
  listener: (change: CredentialChange) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, CLOUD_CREDENTIALS, listener, options)
