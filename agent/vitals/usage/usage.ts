// Computes a sample (spec §4.3) from two readings. null: unknown, or a figure of the host.

import type { MetricsSample } from '../../../shared/api/metrics.ts'
import { MAX_REPORTED_INTEGER, MAX_SAMPLE_GROUPS } from '../../../shared/report-limits.ts'
import { isDead } from '../../process-table.ts'
import type { FileSystemReading, Reading } from './reading.ts'

export type Usage = Pick<MetricsSample, 'values' | 'fs' | 'ifaces'> & {
  /** CPUs that the processes other than the agent used. */
  otherCpus: number | null
}

/** CPU time is counted in ticks of 10 ms: a rate over a shorter interval is too imprecise. */
const MIN_INTERVAL_MS = 2000

/** Rates are means between the readings. */
export function computeUsage(now: Reading, before: Reading | undefined, listenerCount: number | null): Usage {
  const intervalMs = before === undefined ? 0 : now.monotonicMs - before.monotonicMs
  /** null when a total is unknown, or was reset. */
  const perSecond = (
    total: number | null | undefined,
    previous: number | null | undefined,
  ): number | null => {
    if (intervalMs < MIN_INTERVAL_MS || total == null || previous == null || total < previous) return null
    return ((total - previous) * 1000) / intervalMs
  }
  const rate = (total: number | null | undefined, previous: number | null | undefined) =>
    toInteger(perSecond(total, previous))
  const busyCpus = perSecond(now.cpuSeconds, before?.cpuSeconds)
  const findFileSystem = ({ mount }: FileSystemReading) =>
    before?.fileSystems.find((other) => other.mount === mount)?.throughput
  const findInterface = (name: string) => before?.interfaces.find((other) => other.name === name)

  return {
    values: {
      cpu_pct: busyCpus === null ? null : toPercent(busyCpus / now.cpus),
      cpu_count: now.cpus,
      mem_used_bytes: toInteger(now.memory.usedBytes),
      mem_total_bytes: toInteger(now.memory.totalBytes),
      load1: now.load?.[0] ?? null,
      load5: now.load?.[1] ?? null,
      load15: now.load?.[2] ?? null,
      process_count: now.processes.filter((process) => !isDead(process)).length,
      listener_count: listenerCount,
      disk_read_bytes_per_sec: rate(now.disk?.readBytes, before?.disk?.readBytes),
      disk_write_bytes_per_sec: rate(now.disk?.writtenBytes, before?.disk?.writtenBytes),
    },
    fs: largest(now.fileSystems, ({ totalBytes }) => totalBytes ?? 0).map((fileSystem) => ({
      mount: fileSystem.mount.slice(0, MAX_NAME_CHARS),
      used_bytes: toInteger(fileSystem.usedBytes),
      total_bytes: toInteger(fileSystem.totalBytes),
      read_bytes_per_sec: rate(fileSystem.throughput?.readBytes, findFileSystem(fileSystem)?.readBytes),
      write_bytes_per_sec: rate(
        fileSystem.throughput?.writtenBytes,
        findFileSystem(fileSystem)?.writtenBytes,
      ),
    })),
    ifaces: largest(now.interfaces, ({ rxBytes, txBytes }) => rxBytes + txBytes).map(
      ({ name, rxBytes, txBytes }) => ({
        name: name.slice(0, MAX_NAME_CHARS),
        rx_bytes_per_sec: rate(rxBytes, findInterface(name)?.rxBytes),
        tx_bytes_per_sec: rate(txBytes, findInterface(name)?.txBytes),
      }),
    ),
    otherCpus: perSecond(now.otherCpuSeconds, before?.otherCpuSeconds),
  }
}

/** The bound of reportedNameSchema. */
const MAX_NAME_CHARS = 256

const largest = <T>(items: readonly T[], size: (item: T) => number): T[] =>
  items.toSorted((a, b) => size(b) - size(a)).slice(0, MAX_SAMPLE_GROUPS)

const toInteger = (value: number | null): number | null =>
  value === null || !Number.isFinite(value)
    ? null
    : Math.round(Math.min(MAX_REPORTED_INTEGER, Math.max(0, value)))

/** @returns 0 to 100 with one decimal */
export const toPercent = (fraction: number): number =>
  Math.round(Math.min(1, Math.max(0, fraction)) * 1000) / 10
