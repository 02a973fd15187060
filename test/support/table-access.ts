// Finds queries on tables of which the directory is neither the owner nor a listed reader.
import { dirname, relative } from 'node:path'
import { GENERIC_STORES, READERS, TABLE_OWNERS, type TableAccess, WRITERS } from './table-owners.ts'

type Source = { file: string; text: string }
export type TableProblem = Source & { offset: number; problem: string; reason: string }

/** The calls of Kysely that name a table. */
const QUERY = /\.(insertInto|updateTable|deleteFrom|selectFrom|innerJoin|leftJoin)\(\s*(?:'(\w+)|([^\s')]))/g
/** Statements in SQL text that write. */
const WRITING_SQL = /sql`\s*(update|delete from|insert into)\s+(\w+|\$\{)/g
const DECLARATION = /declare module '[^']*db\/schema\.ts' \{\s*interface Tables \{([^}]*)\}/g
const WRITES = new Set(['insertInto', 'updateTable', 'deleteFrom'])

export function findTableProblems(sources: readonly Source[]): TableProblem[] {
  const owners = listOwners(sources)
  return sources.flatMap(({ file, text }) => {
    const found = (offset: number, problem: string, reason: string) => [
      { file, text, offset, problem, reason },
    ]
    const path = relative('coordinator', file)
    const check = (table: string | undefined, isWrite: boolean, offset: number) => {
      if (table === undefined)
        return path in GENERIC_STORES || path.startsWith('db/')
          ? []
          : found(offset, 'writes a table whose name is a variable', 'the owner of a table must be visible')
      const owner = owners.get(table)
      const dir = dirname(path)
      if (owner === dir || isListed(isWrite ? WRITERS : [...READERS, ...WRITERS], dir, table)) return []
      const problem = `${isWrite ? 'writes' : 'reads'} the table ${table}`
      if (owner === undefined) return found(offset, problem, 'the table has no owner in table-owners.ts')
      return found(
        offset,
        problem,
        `its owner is ${owner}; readers are listed with a reason in table-owners.ts`,
      )
    }
    // Migrations change tables before they have owners.
    if (path.startsWith('db/migrations/')) return []
    return [
      ...[...text.matchAll(QUERY)].flatMap(({ index, 1: call = '', 2: table }) =>
        // A query may read a subquery, which names its table.
        table === undefined && !WRITES.has(call) ? [] : check(table, WRITES.has(call), index),
      ),
      ...[...text.matchAll(WRITING_SQL)].flatMap(({ index, 2: table = '' }) =>
        check(table === '${' ? undefined : table, true, index),
      ),
    ]
  })
}

/** The listed owners, and the directories that declare tables of their own. */
function listOwners(sources: readonly Source[]): Map<string, string> {
  const owners = new Map<string, string>(Object.entries(TABLE_OWNERS))
  for (const { file, text } of sources)
    for (const [, fields = ''] of text.matchAll(DECLARATION))
      for (const [, table = ''] of fields.matchAll(/^\s*(\w+):/gm))
        owners.set(table, dirname(relative('coordinator', file)))
  return owners
}

const isListed = (accesses: readonly TableAccess[], dir: string, table: string): boolean =>
  accesses.some((access) => access.dir === dir && (access.tables as readonly string[]).includes(table))
