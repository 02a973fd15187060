// Captures the queries that a function runs, with the database's plan for each of them.
import { CompiledQuery, type KyselyPlugin, type RootOperationNode, sql } from 'kysely'
import { dialectTraits } from '../../coordinator/db/dialects.ts'
import type { Db } from '../../coordinator/db/open.ts'

/**
 * Returns a database that captures its queries, and a function that returns the lines of their plans. Postgres plans without
 * sequential and bitmap scans where it can, because it prefers them for the small tables of tests.
 */
export function capturePlans(db: Db): { db: Db; readPlans(): Promise<string[]> } {
  const nodes: RootOperationNode[] = []
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      nodes.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }

  async function explain(node: RootOperationNode): Promise<string[]> {
    const { sql: text, parameters } = db.getExecutor().compileQuery(node, { queryId: 'plan' })
    if (!dialectTraits(db).locksRows) {
      const query = CompiledQuery.raw(`explain query plan ${text}`, [...parameters])
      return (await db.executeQuery<{ detail: string }>(query)).rows.map(({ detail }) => detail)
    }
    return db.transaction().execute(async (trx) => {
      for (const method of ['seqscan', 'bitmapscan'])
        await sql`set local ${sql.raw(`enable_${method}`)} = off`.execute(trx)
      const query = CompiledQuery.raw(`explain ${text}`, [...parameters])
      const { rows } = await trx.executeQuery<{ 'QUERY PLAN': string }>(query)
      return rows.map((row) => row['QUERY PLAN'].replace(/^[ >-]+/, ''))
    })
  }

  async function readPlans(): Promise<string[]> {
    const plans: string[] = []
    for (const node of nodes.splice(0)) plans.push(...(await explain(node)))
    return plans
  }
  return { db: db.withPlugin(plugin), readPlans }
}

/** Returns a database that captures its queries, and a function that returns them in short, such as `select boxes`. */
export function captureQueries(db: Db): { db: Db; readQueries(): string[] } {
  const queries: string[] = []
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      const { sql: text } = db.getExecutor().compileQuery(node, { queryId: 'capture' })
      const [, operation = text] = /^(\w+)/.exec(text) ?? []
      const [, table = ''] = /(?:from|into|update) "(\w+)"/.exec(text) ?? []
      queries.push(`${operation} ${table}`)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  return { db: db.withPlugin(plugin), readQueries: () => queries.splice(0) }
}
