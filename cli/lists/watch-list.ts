// --watch of the list commands: redraws the table on a terminal, else prints the rows that changed.
import { printMessage } from '../output/print.ts'
import { createChangePrinter } from './change-printer.ts'
import { formatRows } from './format-rows.ts'
import type { List, Loaded } from './list.ts'
import type { Format } from './options.ts'
import { poll } from './poll.ts'
import { createScreenRegion } from './screen-region.ts'

export type WatchOptions = { format: Format; showHeader: boolean; isFiltered: boolean; signal: AbortSignal }

/** Never resolves. Throws as poll does. */
export function watchList<Row>(
  list: List<Row>,
  load: () => Promise<Loaded<Row>>,
  options: WatchOptions,
): Promise<never> {
  const canRedraw = process.stdout.isTTY && process.env.TERM !== 'dumb'
  return canRedraw && !list.isAppendOnly && options.format !== 'json'
    ? watchOnTerminal(list, load, { ...options, format: options.format })
    : watchChanges(list, load, options)
}

async function watchOnTerminal<Row>(
  list: List<Row>,
  load: () => Promise<Loaded<Row>>,
  { format, showHeader, isFiltered, signal }: WatchOptions & { format: Exclude<Format, 'json'> },
): Promise<never> {
  const region = createScreenRegion(process.stdout)
  let rows: Row[] = []
  let message: string | null = null
  const draw = () => {
    const { header, lines } = formatRows(list, rows, { format, showHeader, now: Date.now() })
    const body = lines.length > 0 ? [...header, ...lines] : [list.getEmptyMessage(isFiltered)]
    region.draw([...body, ...(message === null ? [] : [`box: ${message}`])])
  }
  const onResize = () => {
    region.clearScreen()
    draw()
  }
  process.stdout.on('resize', onResize)
  try {
    return await poll({
      signal,
      request: load,
      onResult(loaded) {
        rows = loaded.rows
        message = loaded.note ?? null
        draw()
      },
      onOutage(reason) {
        message = `${reason} Retrying.`
        draw()
      },
    })
  } finally {
    process.stdout.off('resize', onResize)
  }
}

function watchChanges<Row>(
  list: List<Row>,
  load: () => Promise<Loaded<Row>>,
  { signal, ...options }: WatchOptions,
): Promise<never> {
  const printer = createChangePrinter(list, options)
  let isOutage = false
  let printedNote: string | null = null
  return poll({
    signal,
    request: load,
    onResult({ rows, note = null }) {
      if (isOutage) printMessage('reconnected.')
      isOutage = false
      if (note !== null && note !== printedNote) printMessage(note)
      printedNote = note
      printer.update(rows)
    },
    onOutage(reason) {
      isOutage = true
      printMessage(`${reason} Retrying; press Ctrl-C to stop.`)
    },
  })
}
