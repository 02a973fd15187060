// Prints the rows of a list that are new, changed or removed, as `kubectl get -w` does.
import { formatJson, print } from '../output/print.ts'
import { formatRows, getFingerprint } from './format-rows.ts'
import type { List } from './list.ts'
import type { Format } from './options.ts'

export type ChangePrinter<Row> = { update(rows: readonly Row[]): void }

export function createChangePrinter<Row>(
  list: List<Row>,
  { format, showHeader }: { format: Format; showHeader: boolean },
): ChangePrinter<Row> {
  let previous = new Map<string, Row>()
  let isHeaderPrinted = false

  function printRows(changed: ReadonlySet<Row>, all: readonly Row[]): void {
    if (format === 'json') {
      for (const row of changed) print(formatJson(row))
      return
    }
    // All rows are formatted, so that the columns have the same width in each update.
    const { header, lines } = formatRows(list, all, { format, showHeader, now: Date.now() })
    if (!isHeaderPrinted && changed.size > 0) {
      for (const line of header) print(line)
      isHeaderPrinted = true
    }
    for (const [index, line] of lines.entries()) if (changed.has(all[index] as Row)) print(line)
  }

  return {
    update(rows) {
      const current = new Map(rows.map((row) => [list.getId(row), row]))
      const isChanged = (row: Row) => {
        const before = previous.get(list.getId(row))
        return before === undefined || getFingerprint(list, before) !== getFingerprint(list, row)
      }
      const removed = [...previous]
        .filter(([id]) => !current.has(id))
        .flatMap(([, row]) => list.toRemoved?.(row) ?? [])
      printRows(new Set([...rows.filter(isChanged), ...removed]), [...rows, ...removed])
      previous = current
    },
  }
}
