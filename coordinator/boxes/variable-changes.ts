// Notifies of changes of what boxes get from their environments, their variables and their mounts.
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'

const BOX_VARIABLES = defineTopic<{ boxId: string }>('box variables')

/** The coordinator with the agent of the box sends the change to it after the commit. */
export const recordVariableChange = (trx: Trx, boxId: string): void => notify(trx, BOX_VARIABLES, { boxId })

/** See subscribe(). */
export const subscribeToVariableChanges = (
  db: Db,
  listener: (boxId: string) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, BOX_VARIABLES, ({ boxId }) => listener(boxId), options)
