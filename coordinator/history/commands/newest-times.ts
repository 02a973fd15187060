// Lists when the newest command of each box was requested. Reads one index entry per box.
import type { Db } from '../../db/open.ts'
import { selectNewestRequestTimes } from './store.ts'

/** Far below the parameter limit of either database. */
const BOXES_PER_STATEMENT = 500

/** By box id, in milliseconds since the epoch. Leaves out boxes without a record. */
export async function listNewestCommandTimes(
  db: Db,
  boxIds: readonly string[],
): Promise<Map<string, number>> {
  const times = new Map<string, number>()
  for (let offset = 0; offset < boxIds.length; offset += BOXES_PER_STATEMENT)
    for (const { boxId, at } of await selectNewestRequestTimes(
      db,
      boxIds.slice(offset, offset + BOXES_PER_STATEMENT),
    ))
      if (at !== null) times.set(boxId, at)
  return times
}
