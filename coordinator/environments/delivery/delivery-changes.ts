// Notifies of boxes that have files to get or to lose, or repositories to clone or to update.
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'

export type Delivery = { boxId: string; content: 'files' | 'repos' }

const DELIVERIES = defineTopic<Delivery>('deliveries')

/** The coordinator with the agent of the box begins after the commit. */
export const recordDelivery = (trx: Trx, delivery: Delivery): void => notify(trx, DELIVERIES, delivery)

/** See subscribe(). */
export const subscribeToDeliveries = (
  db: Db,
  listener: (delivery: Delivery) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, DELIVERIES, listener, options)
