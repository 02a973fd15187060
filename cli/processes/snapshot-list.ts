// The list of the processes of a past moment, with the ports on which they listened.
import type { ListeningPort, ProcsAt, SnapshotProcess } from '../../shared/api/process-snapshots.ts'
import type { List, Loaded } from '../lists/list.ts'
import { formatLocalTime, formatWholeSeconds } from '../output/format.ts'
import { CPU_COLUMN, MEMORY_COLUMN } from './usage-columns.ts'

export type SnapshotRow = SnapshotProcess & { ports: number[] }

const FILTERS: List<SnapshotRow>['filters'] = {
  user: { get: ({ user }) => user },
  command: { get: ({ command, name }) => command ?? name },
  port: { get: ({ ports }) => (ports.length > 0 ? ports.join(' ') : null) },
}

export const createSnapshotList = (boxName: string): List<SnapshotRow> => ({
  columns: [
    { header: 'PID', cell: ({ pid }) => String(pid) },
    { header: 'PPID', cell: ({ ppid }) => String(ppid), isWide: true },
    { header: 'USER', cell: ({ user }) => user },
    CPU_COLUMN,
    MEMORY_COLUMN,
    { header: 'STARTED', cell: ({ startedAt }) => formatLocalTime(Date.parse(startedAt)) },
    { header: 'PORTS', cell: ({ ports }) => ports.join(',') || '-' },
    { header: 'COMMAND', cell: ({ command, name }) => command ?? `[${name}]` },
  ],
  getId: ({ pid, startedAt }) => `${pid} ${startedAt}`,
  getName: ({ pid }) => String(pid),
  filters: FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered ? `No matching processes on ${boxName}.` : `No processes on ${boxName}.`,
})

export const SNAPSHOT_FILTERS: List<never>['filters'] = FILTERS

/** The processes by CPU usage, descending. @param requested milliseconds since the epoch */
export function toLoadedSnapshot(snapshot: ProcsAt, requested: number): Loaded<SnapshotRow> {
  const { procs, ports, total } = snapshot
  const rows = procs
    .map((process) => ({ ...process, ports: ports.filter(({ pid }) => pid === process.pid).map(getPort) }))
    .sort((a, b) => b.cpuPct - a.cpuPct || b.memBytes - a.memBytes || a.pid - b.pid)
  const pids = new Set(procs.map(({ pid }) => pid))
  const otherPorts = ports.filter(({ pid }) => pid === null || !pids.has(pid))
  const notes = [`snapshot of ${formatMoment(Date.parse(snapshot.at), requested)}.`]
  if (total > procs.length) notes.push(`${procs.length} of ${total} processes are stored.`)
  if (otherPorts.length > 0)
    notes.push(`Also listening, by unknown processes: ${otherPorts.map(getPort).join(', ')}.`)
  return {
    rows,
    toJson: (shown) => {
      const shownPids = new Set(shown.map(({ pid }) => pid))
      return { ...snapshot, procs: procs.filter(({ pid }) => shownPids.has(pid)) }
    },
    note: notes.join(' '),
  }
}

const getPort = ({ port }: ListeningPort): number => port

function formatMoment(at: number, requested: number): string {
  const seconds = Math.round(Math.abs(at - requested) / 1000)
  const relation =
    seconds === 0
      ? 'the requested time'
      : `${formatWholeSeconds(seconds)} ${at < requested ? 'before' : 'after'} the requested time`
  return `${formatLocalTime(at)}, ${relation}`
}
