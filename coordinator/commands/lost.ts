// Commands whose end nobody can know any more. What the box reports later still counts.
import type { Trx } from '../db/transaction.ts'
import { loseRunning } from './store.ts'

/** The box's machine is off or gone, or what it remembered is: whatever ran is presumed lost. */
export const loseCommands = (trx: Trx, boxId: string) => loseRunning(trx, boxId)

/** A new process of the agent: a synchronous command ended with the one that ran it. */
export const loseSyncCommands = (trx: Trx, boxId: string) => loseRunning(trx, boxId, 'sync')
