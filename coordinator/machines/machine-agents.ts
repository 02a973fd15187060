// Decides whether the agent of an enrolled machine may connect. An agent is refused when its box has been deleted, and when it
// runs from a copy of the disk of another machine.

import type { MachineAgents } from '../agents/tunnel/types.ts'
import { createBatchLoader } from '../base/batch-loader.ts'
import { AGENT_QUERIES } from '../boxes/lifecycle/authenticate-agent.ts'
import { listDeletedMachines } from '../boxes/lookups.ts'
import { updateBox } from '../boxes/updates.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'

export function createMachineAgents(db: Db): MachineAgents {
  const loadTokenHash = createBatchLoader({
    ...AGENT_QUERIES,
    async load(boxIds) {
      const rows = await listDeletedMachines(db, boxIds)
      return new Map(rows.map((row) => [row.box_id, row.agent_token_hash]))
    },
  })
  return {
    isDeleted: async (boxId, tokenHash) => (await loadTokenHash(boxId)) === tokenHash,
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
