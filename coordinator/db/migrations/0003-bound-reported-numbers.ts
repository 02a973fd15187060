// Repairs numbers of boxes that are too large to be read, and renames sealing_keys to signing_keys.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** MAX_REPORTED_INTEGER of shared/api/common.ts, which earlier versions did not enforce. */
const MAX_INTEGER = 2 ** 50

export const boundReportedNumbers: Migration = {
  async up(db: Kysely<unknown>) {
    for (const stream of ['stdout', 'stderr']) {
      const [bytes, start] = [sql.ref(`${stream}_bytes`), sql.ref(`${stream}_start`)]
      await sql`delete from command_output where stream = ${stream}
        and command_id in (select id from commands where ${bytes} > ${MAX_INTEGER})`.execute(db)
      // All output counts as discarded. The true length is unknown.
      await sql`update commands set ${bytes} = ${MAX_INTEGER}, ${start} = ${MAX_INTEGER}
        where ${bytes} > ${MAX_INTEGER}`.execute(db)
    }
    await sql`update boxes set report_epoch = null, report_seq = 0 where report_seq > ${MAX_INTEGER}`.execute(
      db,
    )
    await db.schema.alterTable('sealing_keys').renameTo('signing_keys').execute()
  },
}
