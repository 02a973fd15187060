// Marks running commands as lost when their exit status cannot be known. A later report of the box overrides it.
import type { Trx } from '../../db/transaction.ts'
import { markRunningLost } from './store.ts'

/** Marks every running command of a box as lost: its machine is stopped or removed, or its agent lost its state. */
export const markCommandsLost = (trx: Trx, boxId: string) => markRunningLost(trx, boxId)

/**
 * Marks the running synchronous commands of a box as lost: they do not survive the agent process that ran them.
 * @param survivors ids of attached commands, which do survive
 */
export const markSyncCommandsLost = (trx: Trx, boxId: string, survivors: readonly string[] = []) =>
  markRunningLost(trx, boxId, { mode: 'sync', except: survivors })
