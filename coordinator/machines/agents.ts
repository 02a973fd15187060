// Decides whether the agent of an enrolled machine may connect: not when its box has been deleted, and not from a copy of the
// disk of another machine.
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { isDeletedMachine } from '../lifecycle/machine-store.ts'
import type { MachineAgents } from '../tunnel/types.ts'

export function createMachineAgents(db: Db): MachineAgents {
  return {
    isDeleted: (boxId, tokenHash) => isDeletedMachine(db, boxId, tokenHash),
    admit: (boxId, lineage) =>
      transaction(db, async (trx) => {
        const box = await lockBox(trx, boxId)
        if (box?.kind !== 'machine') return 'accepted'
        const [newest] = lineage ?? []
        if (lineage === null || newest === undefined) return 'no_lineage'
        const { agent_lineage: known } = box
        if (known === newest) return 'accepted'
        if (known !== null && !lineage.includes(known)) return { clonedFrom: box.hostname }
        await setLineage(trx, boxId, newest)
        return 'accepted'
      }),
  }
}

const setLineage = (trx: Trx, boxId: string, newest: string) =>
  trx.updateTable('boxes').set({ agent_lineage: newest }).where('id', '=', boxId).execute()
