// The newest events of a workspace, or of some of its boxes.
import type { AuditEvent } from '../../shared/api/audit.ts'
import type { Db } from '../db/open.ts'
import type { AuditEventRow } from '../db/schema.ts'
import { listEvents, listEventsOfBoxes } from './event-store.ts'
import { presentEvent } from './present.ts'

/** Each box is one part of a compound query, of which SQLite allows 500. */
const BOXES_PER_QUERY = 100

/** @param options.boxIds null: all events of the workspace, also those of no box */
export async function listNewestEvents(
  db: Db,
  workspaceId: string,
  { boxIds, limit }: { boxIds: readonly string[] | null; limit: number },
): Promise<AuditEvent[]> {
  if (boxIds === null) return (await listEvents(db, { workspaceId }, null, limit)).map(presentEvent)
  let newest: AuditEventRow[] = []
  for (let offset = 0; offset < boxIds.length; offset += BOXES_PER_QUERY) {
    const ids = boxIds.slice(offset, offset + BOXES_PER_QUERY)
    const rows = await listEventsOfBoxes(db, { workspaceId }, ids, limit)
    newest = [...newest, ...rows].sort((a, b) => b.no - a.no).slice(0, limit)
  }
  return newest.map(presentEvent)
}
