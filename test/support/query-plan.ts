// Captures the queries that a function runs, with SQLite's plan for each of them.
import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely'
import type { Db } from '../../coordinator/db/open.ts'

/** Returns a database that captures its queries, and a function that returns the lines of their plans. */
export function capturePlans(db: Db): { db: Db; readPlans(): Promise<string[]> } {
  const nodes: RootOperationNode[] = []
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      nodes.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  async function readPlans(): Promise<string[]> {
    const plans: string[] = []
    for (const node of nodes.splice(0)) {
      const { sql, parameters } = db.getExecutor().compileQuery(node, { queryId: 'plan' })
      const query = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters])
      const { rows } = await db.executeQuery<{ detail: string }>(query)
      plans.push(...rows.map(({ detail }) => detail))
    }
    return plans
  }
  return { db: db.withPlugin(plugin), readPlans }
}
