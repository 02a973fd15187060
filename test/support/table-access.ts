// Finds queries outside stores, and queries on tables of which the directory is neither the owner nor a listed reader.
import { dirname, relative } from 'node:path'
import { GENERIC_STORES, READERS, TABLE_OWNERS, type TableAccess, WRITERS } from './table-owners.ts'

type Source = { file: string; text: string }
export type TableProblem = Source & { offset: number; problem: string; reason: string }

/** The calls of Kysely that name a table, a list of tables or a variable. A subquery names its tables itself. */
const QUERY =
  /\.(insertInto|updateTable|deleteFrom|selectFrom|(?:inner|left|right|full|cross)Join)\(\s*(?:'(\w+)|\[([^\]]*)\]|(\w+)\s*[,)])/g
const SQL_TEXT = /\bsql(?:<[^`]*>)?`([^`]*)/g
const WRITING_SQL = /\b(?:delete from|insert into)\s+(\w+|\$\{)|\bupdate\s+(\w+|\$\{[^}]*\})\s+set\b/g
const READING_SQL = /(?<!\bdelete\s+)\b(?:from|join)\s+(\w+)/g
const DECLARATION = /declare module '[^']*db\/schema\.ts' \{\s*interface Tables \{([^}]*)\}/g
const WRITES = new Set(['insertInto', 'updateTable', 'deleteFrom'])

/** Whether the file has queries: `store.ts`, `NAME-store.ts`, or a file in a directory `store`. */
export const isStore = (file: string): boolean => /[/-]store\.ts$|\/store\/[^/]+\.ts$/.test(file)

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
          : found(offset, 'names a table by a variable', 'the owner of a table must be visible')
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
    const queries = [...text.matchAll(QUERY)]
    const outside = isStore(file) || path.startsWith('db/') ? undefined : queries[0]
    if (outside !== undefined)
      return found(outside.index, 'has a query', 'SQL is in stores, whose tables have one owner')
    return [
      ...queries.flatMap(({ index, 1: call = '', 2: table, 3: list }) => {
        const tables = list?.match(/(?<=')\w+/g) ?? [table]
        return tables.flatMap((name) => check(name, WRITES.has(call), index))
      }),
      ...[...text.matchAll(SQL_TEXT)].flatMap(({ index, 1: statement = '' }) => [
        ...[...statement.matchAll(WRITING_SQL)].flatMap(({ 1: table, 2: updated }) => {
          const name = table ?? updated ?? ''
          return check(name.startsWith('${') ? undefined : name, true, index)
        }),
        // Other names are those of subqueries.
        ...[...statement.matchAll(READING_SQL)].flatMap(({ 1: table = '' }) =>
          owners.has(table) ? check(table, false, index) : [],
        ),
      ]),
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
