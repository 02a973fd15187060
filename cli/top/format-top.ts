// Formats the usage and the processes of a box, as text or for a screen of a certain size.

import type { BoxDetail } from '../../shared/api/boxes.ts'
import type { LiveProcess, LiveProcesses } from '../../shared/api/live-processes.ts'
import { formatCount } from '../../shared/format-count.ts'
import { colorize } from '../output/colors.ts'
import { formatAge, formatBytes, formatLocalTime, formatWholeSeconds } from '../output/format.ts'
import { sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'
import { CPU_COLUMN, MEMORY_COLUMN } from '../processes/usage-columns.ts'

export type TopSample = { live: LiveProcesses; detail: BoxDetail }

export const SORT_KEYS = ['cpu', 'memory', 'pid'] as const
export type SortKey = (typeof SORT_KEYS)[number]

export type ScreenOptions = {
  sort: SortKey
  /** Shown instead of the keys, such as that the coordinator does not respond. */
  message: string | null
  columns: number
  rows: number
}

const KEYS = 'q quit   sort by: c CPU   m memory   p pid'
/** A smaller screen has no title and no keys. */
const MIN_FULL_ROWS = 10
/** `box kill` accepts the first characters of an id. */
const ID_LENGTH = 10

/** Shown on a screen of `minColumns` to `maxColumns`. */
type Column = {
  header: string
  cell(process: LiveProcess, now: number): string
  minColumns?: number
  maxColumns?: number
}
const COLUMNS: Column[] = [
  { header: 'PID', cell: ({ pid }) => String(pid) },
  { header: 'USER', cell: ({ user }) => user, minColumns: 60 },
  CPU_COLUMN,
  { ...MEMORY_COLUMN, minColumns: 36 },
  { header: 'S', cell: ({ state }) => state, minColumns: 60 },
  {
    header: 'AGE',
    cell: ({ startedAt }, now) => (startedAt === null ? '-' : formatAge(startedAt, now)),
    minColumns: 60,
  },
  { header: 'ID', cell: ({ processId }) => processId?.slice(0, ID_LENGTH) ?? '-', minColumns: 80 },
  { header: 'NAME', cell: ({ name }) => name, maxColumns: 59 },
  { header: 'COMMAND', cell: ({ command, name }) => command || `[${name}]`, minColumns: 60 },
]

const COMPARE: Record<SortKey, (a: LiveProcess, b: LiveProcess) => number> = {
  cpu: (a, b) => b.cpuPct - a.cpuPct || b.memBytes - a.memBytes,
  memory: (a, b) => b.memBytes - a.memBytes,
  pid: (a, b) => a.pid - b.pid,
}

/** Returns as many lines as the screen has rows. */
export function formatScreen(sample: TopSample, { sort, message, columns, rows }: ScreenOptions): string[] {
  const isFull = rows >= MIN_FULL_ROWS
  const truncate = (line: string) => [...line].slice(0, columns).join('')
  const head = [...(isFull ? [formatTitle(sample)] : []), formatUsage(sample.live), ...(isFull ? [''] : [])]
  const notice = message === null ? (isFull ? KEYS : null) : `box: ${sanitize(message)}`
  const [header = '', ...lines] = formatProcesses(sample.live, sort, columns)
  const body = [colorize(truncate(header), 'bold'), ...lines.map(truncate)]
  const height = Math.max(0, rows - head.length - (notice === null ? 0 : 1))
  const padding = Array<string>(Math.max(0, height - body.length)).fill('')
  return [
    ...head.map(truncate),
    ...body.slice(0, height),
    ...padding,
    ...(notice === null ? [] : [colorize(truncate(notice), message === null ? 'gray' : 'yellow')]),
  ].slice(-rows)
}

/** All processes, for output that is not a screen. */
export const formatText = (sample: TopSample, sort: SortKey): string =>
  [
    formatTitle(sample),
    formatUsage(sample.live),
    '',
    ...formatProcesses(sample.live, sort, Number.POSITIVE_INFINITY),
  ].join('\n')

function formatTitle({ live, detail: { box, state, vitals } }: TopSample): string {
  const now = Date.parse(live.at)
  const idle = vitals === null ? '' : `, idle for ${formatWholeSeconds(vitals.idle_for_sec)}`
  const time = formatLocalTime(now)
  return `${sanitize(box.hostname)}: ${state.observed} for ${formatAge(state.since, now)}${idle}   ${time}`
}

function formatUsage({
  cpuPct,
  cpuCount,
  memUsedBytes,
  memTotalBytes,
  total,
  processes,
}: LiveProcesses): string {
  const cpu = cpuPct === null ? '-' : `${cpuPct.toFixed(1)}%`
  const cpus = cpuCount === null ? '' : ` of ${formatCount(cpuCount, 'CPU')}`
  const used = memUsedBytes === null ? '-' : formatBytes(memUsedBytes)
  const limit = memTotalBytes === null ? '' : ` of ${formatBytes(memTotalBytes)}`
  const share =
    memUsedBytes === null || !memTotalBytes ? '' : ` (${Math.round((memUsedBytes / memTotalBytes) * 100)}%)`
  const listed = processes.length < total ? ` (${processes.length} listed)` : ''
  return `CPU ${cpu}${cpus}   memory ${used}${limit}${share}   ${formatCount(total, 'process', 'processes')}${listed}`
}

/** The header, and a line for each process. */
function formatProcesses({ at, processes }: LiveProcesses, sort: SortKey, columns: number): string[] {
  const now = Date.parse(at)
  const shown = COLUMNS.filter(
    ({ minColumns = 0, maxColumns = Infinity }) => minColumns <= columns && columns <= maxColumns,
  )
  const rows = [...processes]
    .sort(COMPARE[sort])
    .map((process) => shown.map(({ cell }) => cell(process, now)))
  return formatTable([shown.map(({ header }) => header), ...rows], columns).split('\n')
}
