// Replaces the audit log of a workspace by many events. Their hashes are not valid.
import { sql } from 'kysely'
import type { Db } from '../../coordinator/db/open.ts'

/** The events of fillAuditLog() are EVENT_INTERVAL_MS apart. */
export const EVENTS_START = Date.UTC(2029, 0, 1)
export const EVENT_INTERVAL_MS = 1000

/** Events per query. Postgres stops a query that takes too long. */
const BATCH_SIZE = 100_000

export const toBoxId = (index: number): string => `00000000-0000-4000-8000-0000000000${index + 10}`

type Options = { workspaceId: string; userId: string; otherUserId: string; count: number }

/**
 * Event `no` has box `no % 20`; nine of ten events are `exec` of clients, one of a thousand is `key.create`, and one of
 * 50,000 is `member.remove`, by another user than the others.
 */
export async function fillAuditLog(db: Db, options: Options): Promise<void> {
  const { workspaceId, count } = options
  const hash = 'f'.repeat(64)
  await db.deleteFrom('audit_log').execute()
  await db.deleteFrom('audit_heads').execute()
  for (let first = 1; first <= count; first += BATCH_SIZE)
    await insertEvents(db, options, [first, Math.min(first + BATCH_SIZE - 1, count)], hash)
  await sql`insert into audit_heads (workspace_id, no, hash, at, pruned_no, pruned_hash)
    values (${workspaceId}, ${count}, ${hash}, ${EVENTS_START + count * EVENT_INTERVAL_MS}, 0, ${hash})`.execute(
    db,
  )
  await sql`analyze audit_log`.execute(db)
}

const insertEvents = (
  db: Db,
  { workspaceId, userId, otherUserId }: Options,
  [first, last]: [number, number],
  hash: string,
) =>
  sql`
    insert into audit_log (workspace_id, no, at, kind, origin, actor_kind, actor_user_id, actor_token_id, box_id, detail,
      salt, detail_hash, hash)
    with recursive numbers (no) as
      (select ${sql.lit(first)} union all select no + 1 from numbers where no < ${sql.lit(last)})
    select ${workspaceId}, no, ${sql.lit(EVENTS_START)} + no * ${sql.lit(EVENT_INTERVAL_MS)},
      case when no % 50000 = 7 then 'member.remove' when no % 1000 = 3 then 'key.create'
        when no % 10 = 0 then 'box.wake' else 'exec' end,
      case when no % 50000 = 7 or no % 1000 = 3 or no % 10 = 0 then 'server' else 'client' end,
      'user', case when no % 50000 = 7 then ${otherUserId} else ${userId} end, 'key_000000000000000000000000',
      '00000000-0000-4000-8000-0000000000' || cast(no % 20 + 10 as text),
      '{"text":"' || ${'x'.repeat(200)} || '"}', '00000000000000000000000000000000', ${hash}, ${hash}
    from numbers`.execute(db)
