// Reads a Postgres database that coordinators use: without their lock, and without migrations.
import { Kysely } from 'kysely'
import { postgresDialect } from '../dialects.ts'
import type { Db } from '../open.ts'
import type { Tables } from '../schema.ts'
import { createConnector } from './connect.ts'

/** Throws Errors whose messages are meant for the operator when the database cannot be reached. */
export async function readPostgres<R>(url: string, read: (db: Db) => Promise<R>): Promise<R> {
  const { createPool } = await createConnector(url)
  const db = new Kysely<Tables>({ dialect: postgresDialect(createPool({ max: 1 })) })
  try {
    return await read(db)
  } finally {
    await db.destroy()
  }
}
