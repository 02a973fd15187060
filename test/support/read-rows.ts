// Counts the rows that the queries of a function read, also those that a condition rejects.
import { DatabaseSync } from 'node:sqlite'
import { CompiledQuery, Kysely, type KyselyPlugin } from 'kysely'
import type { Test } from 'tap'
import { dialectTraits, sqliteDialect } from '../../coordinator/db/dialects.ts'
import { type Db, openDatabase } from '../../coordinator/db/open.ts'
import type { Tables } from '../../coordinator/db/schema.ts'
import { databaseFile } from './sqlite.ts'

/** A SQLite database whose rows can be counted. */
export async function countingSqliteForTest(t: Test): Promise<Db> {
  const file = databaseFile(t)
  await (await openDatabase({ kind: 'sqlite', file })).destroy()
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: false })
  for (const setting of ['journal_mode = memory', 'synchronous = off', 'cache_size = -200000'])
    database.exec(`pragma ${setting}`)
  let count = 0
  // SQLite evaluates the conditions that no index fulfils for each row, in their order.
  database.function('count_row', { varargs: true }, () => {
    count += 1
    return 1
  })
  database.function('take_row_count', () => {
    const result = count
    count = 0
    return result
  })
  const db = new Kysely<Tables>({ dialect: sqliteDialect(database, () => false) })
  t.teardown(() => db.destroy())
  return db
}

/** Returns a database that captures the queries on a table, and a function that runs them again and counts the rows read. */
export function captureSelects(db: Db, table: keyof Tables) {
  const captured: { sql: string; parameters: readonly unknown[] }[] = []
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      const query = db.getExecutor().compileQuery(node, { queryId: 'rows' })
      if (query.sql.startsWith('select') && query.sql.includes(` from "${table}"`)) captured.push(query)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  async function countRows(): Promise<number> {
    const countQuery = dialectTraits(db).locksRows ? countOnPostgres : countOnSqlite
    let rows = 0
    for (const { sql, parameters } of captured.splice(0)) rows += await countQuery(db, sql, parameters)
    return rows
  }
  return { db: db.withPlugin(plugin), countRows, discard: () => void captured.splice(0) }
}

async function countOnSqlite(db: Db, text: string, parameters: readonly unknown[]): Promise<number> {
  if (!text.includes(' where ')) throw new Error(`the query has no condition: ${text}`)
  const counting = text.replace(' where ', ' where count_row(rowid) and ')
  await db.executeQuery(CompiledQuery.raw(counting, [...parameters]))
  const { rows } = await db.executeQuery<{ count: number }>(
    CompiledQuery.raw('select take_row_count() as count'),
  )
  return rows[0]?.count ?? 0
}

type PlanNode = {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: PlanNode[]
}

async function countOnPostgres(db: Db, text: string, parameters: readonly unknown[]): Promise<number> {
  const query = CompiledQuery.raw(`explain (analyze, format json) ${text}`, [...parameters])
  const { rows } = await db.executeQuery<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(query)
  const count = (node: PlanNode): number => {
    const readByChildren = (node.Plans ?? []).reduce((sum, child) => sum + count(child), 0)
    // A bitmap index scan finds the rows that its parent reads.
    const type = node['Node Type']
    if (!type.endsWith('Scan') || type === 'Bitmap Index Scan') return readByChildren
    const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
    return readByChildren + (node['Actual Rows'] + removed) * node['Actual Loops']
  }
  return (rows[0]?.['QUERY PLAN'] ?? []).reduce((sum, { Plan: plan }) => sum + count(plan), 0)
}
