// Differences between consecutive process snapshots. The agent creates them; the coordinator stores and applies them.
import type { DeltaProcess, ListeningTuple, ProcessDelta } from './api/process-snapshots.ts'
import { MAX_RSS_KIB, MAX_SNAPSHOT_PROCESSES } from './report-limits.ts'

export type SnapshotEntry = {
  process: DeltaProcess
  /** Tenths of a percent of one CPU, since the previous snapshot. */
  cpuTenths: number
  /** Resident memory. */
  rssKiB: number
}

/** A snapshot has at most MAX_SNAPSHOT_PROCESSES processes, by pid. */
export type ProcessSnapshot = {
  processes: ReadonlyMap<number, SnapshotEntry>
  ports: readonly ListeningTuple[]
  total: number
}

export const EMPTY_SNAPSHOT: ProcessSnapshot = { processes: new Map(), ports: [], total: 0 }

/** A complete snapshot is the delta from EMPTY_SNAPSHOT. */
export function createDelta(previous: ProcessSnapshot, current: ProcessSnapshot): ProcessDelta {
  const delta: ProcessDelta = { added: [], removed: [], usage: [], total: current.total }
  for (const [pid, entry] of current.processes) {
    const before = previous.processes.get(pid)
    if (before === undefined || !isSameTuple(before.process, entry.process)) delta.added.push(entry.process)
    const grownKiB = entry.rssKiB - (before?.rssKiB ?? 0)
    if (grownKiB !== 0) delta.usage.push([pid, entry.cpuTenths, grownKiB])
    else if (before?.cpuTenths !== entry.cpuTenths) delta.usage.push([pid, entry.cpuTenths])
  }
  delta.removed = [...previous.processes.keys()].filter((pid) => !current.processes.has(pid))
  if (!isSamePorts(previous.ports, current.ports)) delta.ports = [...current.ports]
  return delta
}

/**
 * Applies deltas in their order. Accepts any delta that has passed its schema: ignores changes to unknown processes, and new
 * processes beyond MAX_SNAPSHOT_PROCESSES. A process without usage has none. Copies the processes once, not for each delta.
 */
export function applyDeltas(previous: ProcessSnapshot, deltas: Iterable<ProcessDelta>): ProcessSnapshot {
  const processes = new Map(previous.processes)
  let { ports, total } = previous
  for (const delta of deltas) {
    updateProcesses(processes, delta)
    if (delta.ports !== undefined) ports = delta.ports
    total = delta.total
  }
  return { processes, ports, total }
}

export const applyDelta = (previous: ProcessSnapshot, delta: ProcessDelta): ProcessSnapshot =>
  applyDeltas(previous, [delta])

function updateProcesses(
  processes: Map<number, SnapshotEntry>,
  { removed, added, usage }: ProcessDelta,
): void {
  for (const pid of removed) processes.delete(pid)
  for (const process of added) {
    const [pid] = process
    const before = processes.get(pid)
    if (before === undefined && processes.size >= MAX_SNAPSHOT_PROCESSES) continue
    processes.set(pid, { process, cpuTenths: before?.cpuTenths ?? 0, rssKiB: before?.rssKiB ?? 0 })
  }
  for (const [pid, cpuTenths, grownKiB = 0] of usage) {
    const entry = processes.get(pid)
    if (entry === undefined) continue
    const rssKiB = Math.min(MAX_RSS_KIB, Math.max(0, entry.rssKiB + grownKiB))
    processes.set(pid, { ...entry, cpuTenths, rssKiB })
  }
}

const isSameTuple = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((field, index) => field === b[index])

export const isSamePorts = (a: readonly ListeningTuple[], b: readonly ListeningTuple[]): boolean =>
  a.length === b.length && a.every((port, index) => isSameTuple(port, b[index] ?? []))
