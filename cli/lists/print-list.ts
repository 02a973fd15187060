// Prints a list once, or continuously with --watch.
import { EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage, printStderr } from '../output/print.ts'
import { createMatcher } from './filters.ts'
import { formatRows } from './format-rows.ts'
import type { List, Loaded } from './list.ts'
import { getFormat, type ListOptions } from './options.ts'

/** Returns the exit code. With --watch, rejects with the signal's reason. */
export async function printList<Row>(
  list: List<Row>,
  load: () => Promise<Loaded<Row>>,
  options: ListOptions,
  signal: AbortSignal,
): Promise<number> {
  const { filter = new Map(), header: showHeader, watch } = options
  const format = getFormat(options)
  const matches = createMatcher(list.filters, filter)
  const loadMatching = async (): Promise<Loaded<Row>> => {
    const loaded = await load()
    return { ...loaded, rows: loaded.rows.filter(matches) }
  }
  if (watch) {
    const { watchList } = await import('./watch-list.ts')
    return watchList(list, loadMatching, { format, showHeader, isFiltered: filter.size > 0, signal })
  }
  const { rows, toJson, note = null } = await loadMatching()
  if (note !== null) printMessage(note)
  if (format === 'json') printJson(toJson(rows))
  else {
    const { header, lines } = formatRows(list, rows, { format, showHeader, now: Date.now() })
    for (const line of [...header, ...lines]) print(line)
    if (rows.length === 0 && format !== 'name') printStderr(list.getEmptyMessage(filter.size > 0))
  }
  return EXIT.ok
}
