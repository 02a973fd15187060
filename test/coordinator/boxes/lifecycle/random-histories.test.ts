// Random histories of boxes, with failures of every call and kills between any two statements. A failure prints the seed and
// the steps. BOXWOOD_HISTORY=<seed> runs one history and prints its states; BOXWOOD_HISTORIES=<count> runs that many.
import t from 'tap'
import type { ObservedState } from '../../../../shared/api/boxes.ts'
import { OBSERVED_STATES } from '../../../../shared/field-values.ts'
import { runHistory } from '../../../support/simulation/history.ts'
import { createMemoryDatabase } from '../../../support/simulation/memory-database.ts'
import { createOwner } from '../../../support/workspace.ts'

const { BOXWOOD_HISTORY: only, BOXWOOD_HISTORIES: count = '200' } = process.env
const seeds = only === undefined ? Array.from({ length: Number(count) }, (_, i) => i + 1) : [Number(only)]

t.test(
  'every history ends in the desired state, with the files of the box, and leaves nothing after a delete',
  async (t) => {
    const database = await createMemoryDatabase()
    t.teardown(() => database.close())
    const owner = await createOwner(database.db)
    const visited = new Set<ObservedState>()
    for (const seed of seeds) {
      const result = await runHistory(seed, database, owner)
      for (const state of result.visited) visited.add(state)
      if (only !== undefined) t.comment(result.states.join('\n'))
    }
    t.pass(`${seeds.length} histories`)
    if (only === undefined) t.same([...visited].sort(), [...OBSERVED_STATES].sort(), 'every state is visited')
  },
)
