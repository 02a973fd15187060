// Marks running commands as lost when their exit status cannot be known. A later report of the box overrides it.
import type { Trx } from '../../db/transaction.ts'
import { markRunningLost } from './store.ts'

/** For a box whose machine is stopped or removed, or whose agent lost its state: every running command is lost. */
export const markCommandsLost = (trx: Trx, boxId: string) => markRunningLost(trx, boxId)

/**
 * For a restarted agent: synchronous commands do not survive the agent process that ran them.
 * @param survivors ids of attached commands, which do survive
 */
export const markSyncCommandsLost = (trx: Trx, boxId: string, survivors: readonly string[] = []) =>
  markRunningLost(trx, boxId, { mode: 'sync', except: survivors })
