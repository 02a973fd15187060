// Indexes for lists of the commands with one mode, which would otherwise read all commands of the box.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const commandModes: Migration = {
  async up(db: Kysely<unknown>) {
    for (const [name, columns] of [
      ['commands_by_mode', 'box_id, mode, requested_at, id'],
      ['commands_by_mode_and_status', 'box_id, mode, status, requested_at, id'],
    ] as const)
      await sql`create index ${sql.ref(name)} on commands (${sql.raw(columns)}) where deleted_at is null`.execute(
        db,
      )
  },
}
