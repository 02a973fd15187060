// Finds functions that write rows of which feeds send changes, and do not notify the feeds.
import { dirname, relative } from 'node:path'
import type { Tables } from '../../coordinator/db/schema.ts'
import type { TableProblem } from './table-access.ts'
import { NOTIFYING_TABLES, SILENT_WRITES, TABLE_OWNERS } from './table-owners.ts'

const TABLES = NOTIFYING_TABLES.join('|')
const WRITE = new RegExp(
  `\\.(?:insertInto|updateTable|deleteFrom)\\(\\s*'(${TABLES})'|\\b(?:delete from|insert into|update)\\s+(${TABLES})\\b`,
  'g',
)
/** The declarations at the top of a file. Each ends where the next begins. */
const DECLARATION = /^(?:export )?(?:async )?(?:const|function|class) (\w+)/gm

/** Checks the owners of the tables. Writes of other directories are problems of their own (table-access.ts). */
export function findSilentWrites(sources: readonly Pick<TableProblem, 'file' | 'text'>[]): TableProblem[] {
  return sources.flatMap(({ file, text }) => {
    const path = relative('coordinator', file)
    const declarations = [...text.matchAll(DECLARATION)]
    return declarations.flatMap(({ index: start, 1: name }, i) => {
      const body = text.slice(start, declarations[i + 1]?.index)
      if (body.includes('recordRowChange(') || `${path} ${name}` in SILENT_WRITES) return []
      return [...body.matchAll(WRITE)].flatMap(({ index, 1: called, 2: inText }) => {
        const table = called ?? inText ?? ''
        if (TABLE_OWNERS[table as keyof Tables] !== dirname(path)) return []
        const problem = `${name} writes ${table} without recordRowChange()`
        const reason = 'feeds would miss the change; writes that change no item are listed in table-owners.ts'
        return [{ file, text, offset: start + index, problem, reason }]
      })
    })
  })
}
