// Inserts many boxes, commands and shared ports directly into the database.
import { sql } from 'kysely'
import type { Db } from '../../coordinator/db/open.ts'

type Options = {
  /** A box whose row is copied. */
  boxId: string
  boxes: number
  /** Commands of this box, besides one command of each other box. */
  commands: number
}

/** Every fifth box is deleted. Each box has a shared port. Every fifth command has another status; none is detached. */
export async function fillBoxes(db: Db, { boxId, boxes, commands }: Options): Promise<void> {
  const numbers = (count: number) =>
    sql`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${sql.lit(count)})`
  const columns = (await db.introspection.getTables()).find(({ name }) => name === 'boxes')?.columns ?? []
  const changed: Record<string, ReturnType<typeof sql>> = {
    id: sql`substr(id, 1, 24) || substr('000000000000' || n, -12)`,
    hostname: sql`'box-' || n`,
    created_at: sql`created_at - n`,
    desired_state: sql`case when n % 5 = 0 then 'terminated' else desired_state end`,
    observed_state: sql`case when n % 5 = 0 then 'terminated' else observed_state end`,
    terminated_at: sql`case when n % 5 = 0 then created_at end`,
  }
  const names = columns.map(({ name }) => name)
  await sql`insert into boxes (${sql.join(names.map((name) => sql.ref(name)))})
    ${numbers(boxes - 1)}
    select ${sql.join(names.map((name) => changed[name] ?? sql.ref(name)))} from boxes, numbers
    where id = ${boxId}`.execute(db)
  await sql`insert into commands (id, box_id, mode, source, command, command_truncated, status, exit_code, requested_at,
      started_at, finished_at, actor_kind, output_kept, stdout_bytes, stdout_start, stderr_bytes, stderr_start)
    ${numbers(commands)}
    select 'p_' || substr('000000000000000000000000' || n, -24), ${boxId}, 'sync', 'api', 'true', 0,
      case when n % 5 = 0 then 'failed' else 'exited' end, 0, n, n, n, 'user', 1, 0, 0, 0, 0 from numbers`.execute(
    db,
  )
  await sql`insert into commands (id, box_id, mode, source, command, command_truncated, status, exit_code, requested_at,
      started_at, finished_at, actor_kind, output_kept, stdout_bytes, stdout_start, stderr_bytes, stderr_start)
    select 'p_' || substr(replace(id, '-', ''), -24), id, 'sync', 'api', 'true', 0, 'exited', 0, 1, 1, 1, 'user', 1, 0,
      0, 0, 0 from boxes where id <> ${boxId}`.execute(db)
  await sql`insert into port_shares (id, workspace_id, box_id, port, slug, access, rewrites_host, created_by, created_at,
      ended_at)
    select 'shr_' || substr(replace(id, '-', ''), -24), workspace_id, id, 3000, 'slug-' || id, 'members', 0, 'user:usr_0',
      created_at, terminated_at from boxes where id <> ${boxId}`.execute(db)
}
