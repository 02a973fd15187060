// Checks that the database responds.
import type { Db } from './open.ts'

/** Reads a table: a database without tables does not count. */
export const ping = (db: Db): Promise<unknown> => db.selectFrom('workspaces').select('id').limit(1).execute()
