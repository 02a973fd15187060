// Copies the database while it is in use into a SQLite file, and a SQLite file into an empty Postgres database. Backups of
// both databases have the same form, and are restored into either.
import { execFile } from 'node:child_process'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type RawBuilder, sql } from 'kysely'
import { findSqliteDatabase } from './dialects.ts'
import { listExecutedMigrations } from './executed-migrations.ts'
import { migrations } from './migrations/list.ts'
import { type Db, migrate, openDatabase } from './open.ts'
import { createPrivateFile } from './sqlite-file.ts'

/** The default of SQLite. */
const PAGES_PER_CHECKPOINT = 1000
/** The rows that a copy from or to Postgres holds in memory. A row has at most 64 KiB of output. */
const ROWS_PER_STEP = 200
/** A statement of Postgres has at most 65535 parameters. */
const MAX_PARAMETERS = 30_000

/**
 * Creates the file. The copy has every change that was committed before the call, and is the database at one instant.
 * Other queries continue meanwhile.
 */
export async function copyDatabase(db: Db, file: string): Promise<void> {
  createPrivateFile(file)
  return findSqliteDatabase(db) === null ? copyFromPostgres(db, file) : copySqlite(db, file)
}

/**
 * Without checkpoints, SQLite writes only to its write-ahead log, so the database file does not change while it is copied.
 * backup() of node:sqlite is not used, because it fails while the connection has a transaction. Another process copies:
 * closing the file in this one would release its lock.
 */
async function copySqlite(db: Db, file: string): Promise<void> {
  const setCheckpoints = (pages: number) => sql`pragma wal_autocheckpoint = ${sql.lit(pages)}`
  const source = await db.connection().execute(async (connection) => {
    await setCheckpoints(0).execute(connection)
    const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(connection)
    if (rows[0]?.busy !== 0) throw new Error('The database is in use by another connection.')
    const list = await sql<{ name: string; file: string }>`pragma database_list`.execute(connection)
    return list.rows.find(({ name }) => name === 'main')?.file ?? ''
  })
  try {
    await promisify(execFile)('cp', ['--reflink=auto', '--', source, file])
  } finally {
    await setCheckpoints(PAGES_PER_CHECKPOINT).execute(db)
  }
}

/** Opens a copy, without a migration. Throws an Error for the operator when it is damaged. */
export const openCopy = (file: string): Promise<Db> => openDatabase({ kind: 'sqlite', file, migrateTo: null })

export const listMigrations = (): string[] => Object.keys(migrations)

/** Returns the first problem; null: the SQLite file is intact. */
export async function checkIntegrity(db: Db): Promise<string | null> {
  const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check(1)`.execute(db)
  const result = rows[0]?.integrity_check ?? 'no result'
  return result === 'ok' ? null : result
}

async function copyFromPostgres(source: Db, file: string): Promise<void> {
  const lastMigration = (await listExecutedMigrations(source)).at(-1)
  if (lastMigration === undefined) throw new Error('The database has no tables.')
  const target = await openDatabase({ kind: 'sqlite', file, migrateTo: lastMigration })
  try {
    // The rows of a table may refer to a table that is copied later.
    await sql`pragma foreign_keys = off`.execute(target)
    const tables = await listTables(target)
    await source.connection().execute(async (connection) => {
      await sql`begin isolation level repeatable read read only`.execute(connection)
      try {
        for (const table of tables) await copyTable(connection, target, table)
      } finally {
        await sql`rollback`.execute(connection)
      }
    })
  } finally {
    await target.destroy()
  }
}

async function copyTable(source: Db, target: Db, table: string): Promise<void> {
  const name = sql.id(table)
  await sql`delete from ${name}`.execute(target)
  await sql`declare copied cursor for select * from ${name}`.execute(source)
  for (;;) {
    const { rows } = await sql<Row>`fetch ${sql.lit(ROWS_PER_STEP)} from copied`.execute(source)
    if (rows.length === 0) break
    await target.transaction().execute((trx) => insertRows(trx, table, rows))
    await setImmediate()
  }
  await sql`close copied`.execute(source)
}

/**
 * Copies a SQLite file into a Postgres database without tables, in one transaction.
 * @throws Error for the operator when the database is not empty
 */
export async function copyToPostgres(source: Db, target: Db, commit: () => Promise<void>): Promise<void> {
  const lastMigration = (await listExecutedMigrations(source)).at(-1)
  const tables = await listTables(source)
  await target.transaction().execute(async (trx) => {
    const { rows } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = current_schema()`.execute(
      trx,
    )
    if (rows.length > 0)
      throw new Error('The Postgres database of BOXWOOD_DATABASE_URL is not empty. Create an empty one.')
    await migrate(trx, lastMigration)
    // Tables that refer to others follow them.
    for (const table of await sortByReferences(source, tables)) {
      await sql`delete from ${sql.id(table)}`.execute(trx)
      await copyTableToPostgres(source, trx, table)
    }
    await updateSequences(trx)
    await commit()
  })
}

async function copyTableToPostgres(source: Db, target: Db, table: string): Promise<void> {
  let rows: Row[] = []
  const query = sql<Row>`select * from ${sql.id(table)}`.compile(source)
  for await (const { rows: found } of source.getExecutor().stream<Row>(query, ROWS_PER_STEP)) {
    rows.push(...found)
    if (rows.length < ROWS_PER_STEP) continue
    await insertRows(target, table, rows)
    rows = []
  }
  if (rows.length > 0) await insertRows(target, table, rows)
}

type Row = Record<string, unknown>

async function insertRows(target: Db, table: string, rows: readonly Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  const batch = Math.max(1, Math.floor(MAX_PARAMETERS / Math.max(1, columns.length)))
  // Columns that Postgres numbers.
  const overriding = findSqliteDatabase(target) === null ? sql`overriding system value` : sql``
  for (let start = 0; start < rows.length; start += batch) {
    const values = rows
      .slice(start, start + batch)
      .map((row) => sql`(${sql.join(columns.map((column) => sql.val(row[column])))})`)
    await sql`insert into ${sql.id(table)} (${sql.join(columns.map((column) => sql.id(column)))})
      ${overriding} values ${sql.join(values)}`.execute(target)
  }
}

/** The tables of a SQLite file, also that of the migrations. */
async function listTables(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name`.execute(
    db,
  )
  return rows.map(({ name }) => name)
}

async function sortByReferences(db: Db, tables: readonly string[]): Promise<string[]> {
  const sorted = new Set<string>()
  async function add(table: string, above: readonly string[]): Promise<void> {
    if (sorted.has(table) || above.includes(table)) return
    const { rows } = await sql<{ table: string }>`
      select "table" from pragma_foreign_key_list(${table})`.execute(db)
    for (const { table: referenced } of rows) await add(referenced, [...above, table])
    sorted.add(table)
  }
  for (const table of tables) await add(table, [])
  return [...sorted]
}

/** New rows are numbered after the copied ones. */
async function updateSequences(db: Db): Promise<void> {
  const { rows } = await sql<{ table: string; column: string }>`
    select table_name as "table", column_name as "column" from information_schema.columns
    where table_schema = current_schema() and is_identity = 'YES'`.execute(db)
  for (const { table, column } of rows) {
    const maximum: RawBuilder<unknown> = sql`(select coalesce(max(${sql.id(column)}), 0) + 1 from ${sql.id(table)})`
    await sql`select setval(pg_get_serial_sequence(${table}, ${column}), ${maximum}, false)`.execute(db)
  }
}
