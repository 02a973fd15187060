// Counts the rows that requests read in the SQLite database of a coordinator in this process.
import { type SQLInputValue, type SQLOutputValue, StatementSync } from 'node:sqlite'
import type { Test } from 'tap'
import { findSqliteDatabase } from '../../coordinator/db/dialects.ts'
import type { Db } from '../../coordinator/db/open.ts'

type Row = Record<string, SQLOutputValue>

export type Work = {
  /** Rows that the statements read, also those that a condition rejects. */
  rows: number
  /** The rows that were read within one turn of the event loop, in which no other request is served: the maximum. */
  rowsPerTurn: number
}

/** Returns a function that counts the work of another one. */
export function createWorkCounter(t: Test, db: Db): (run: () => Promise<void>) => Promise<Work> {
  const database = findSqliteDatabase(db)
  if (database === null) throw new Error('the database is not SQLite')
  let turns: string[][] = []
  let isNewTurn = true
  const { all: originalAll } = StatementSync.prototype
  const all: (this: StatementSync, ...parameters: SQLInputValue[]) => Row[] = originalAll
  const recordingAll: typeof all = function (...parameters) {
    const rows = all.apply(this, parameters)
    if (isNewTurn || turns.length === 0) {
      turns.push([])
      setImmediate(() => {
        isNewTurn = true
      })
    }
    isNewTurn = false
    turns.at(-1)?.push(this.expandedSQL)
    return rows
  }
  StatementSync.prototype.all = recordingAll as typeof StatementSync.prototype.all
  t.teardown(() => {
    StatementSync.prototype.all = originalAll
  })
  let visited = 0
  database.function('visit_row', { varargs: true }, () => {
    visited += 1
    return 1
  })

  /** Runs the statement again. SQLite evaluates the condition for each row of the first table, before the others. */
  function countRows(statement: string): number {
    const [, table, alias] = /^select .*? from "(\w+)"(?: as "(\w+)")?/s.exec(statement) ?? []
    if (database === null || !/^(select|with)\b/.test(statement)) return 0
    const counting =
      table === undefined
        ? statement
        : statement.replace(' where ', ` where visit_row("${alias ?? table}".rowid) and `)
    visited = 0
    const returned = all.call(database.prepare(counting)).length
    return Math.max(visited, returned)
  }

  return async (run) => {
    turns = []
    await run()
    const counted = turns
      .splice(0)
      .map((statements) => statements.map(countRows).reduce((sum, rows) => sum + rows, 0))
    return { rows: counted.reduce((sum, rows) => sum + rows, 0), rowsPerTurn: Math.max(0, ...counted) }
  }
}
