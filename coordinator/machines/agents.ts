// Decides whether the agent of an enrolled machine may connect: not when its box has been deleted, and not from a copy of the
// disk of another machine.

import { updateBox } from '../box-store/boxes.ts'
import { isDeletedMachine } from '../box-store/deleted-machines.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
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
        await updateBox(trx, boxId, { agent_lineage: newest })
        return 'accepted'
      }),
  }
}
