// Reads the counters and amounts of which a sample is made, by the scope of the box's figures.
import { statfs } from 'node:fs/promises'
import { TICK_MS } from '../../process-table.ts'
import type { BoxProcess, BoxProcesses } from '../box-processes.ts'
import type { Scope } from '../scope.ts'
import type { DiskSpaceMeter } from './disk-space.ts'
import {
  listFileSystems,
  readDevices,
  readInterfaces,
  readLoad,
  readMachineCpu,
  readMachineMemory,
} from './machine.ts'
import { createProcessTotalsReader, type DiskBytes, type ProcessTotals } from './processes.ts'

/** Seconds and bytes of throughput are totals: a rate is the difference of two readings. null: unknown. */
export type Reading = {
  monotonicMs: number
  cpuSeconds: number
  cpus: number
  /** The CPU time of the processes other than the agent. */
  otherCpuSeconds: number
  memory: { usedBytes: number | null; totalBytes: number | null }
  load: readonly [number, number, number] | null
  disk: DiskBytes | null
  fileSystems: FileSystemReading[]
  interfaces: { name: string; rxBytes: number; txBytes: number }[]
  processes: readonly BoxProcess[]
}
export type FileSystemReading = {
  mount: string
  usedBytes: number | null
  totalBytes: number | null
  throughput: DiskBytes | null
}

export type ReadingDeps = {
  scope: Scope
  home: string
  boxProcesses: BoxProcesses
  diskSpace: DiskSpaceMeter
  procRoot?: string
  agentPid?: number
  /** Milliseconds of a clock that is never set. */
  monotonicNow?: () => number
}

export function createReader(deps: ReadingDeps): () => Promise<Reading> {
  const { scope, home, boxProcesses, diskSpace } = deps
  const { procRoot = '/proc', agentPid = process.pid, monotonicNow = () => performance.now() } = deps
  const processTotals = createProcessTotalsReader(procRoot, agentPid, diskSpace.pid)

  return async () => {
    const monotonicMs = monotonicNow()
    const processes = await boxProcesses.list()
    const totals = await processTotals.advance(processes)
    const common = {
      monotonicMs,
      processes,
      otherCpuSeconds: toSeconds(totals.otherCpuTicks),
      memory: readMemory(scope, processes, procRoot),
    }
    if (scope.kind === 'machine') return { ...common, ...(await readMachine(procRoot)) }
    diskSpace.update(totals.disk?.writtenBytes ?? null)
    return {
      ...common,
      ...readCpu(scope, totals, procRoot),
      load: null,
      disk: totals.disk,
      fileSystems: [
        { mount: home, usedBytes: diskSpace.usedBytes(), totalBytes: scope.diskBytes, throughput: null },
      ],
      interfaces: scope.ownNetwork ? readInterfaces(procRoot) : [],
    }
  }
}

const toSeconds = (ticks: number): number => (ticks * TICK_MS) / 1000

/** A container without a CPU limit may use all CPUs of its machine. */
function readCpu({ cpus, cgroup }: Scope, totals: ProcessTotals, procRoot: string) {
  const ticks = totals.agentCpuTicks + totals.otherCpuTicks
  return {
    cpuSeconds: cgroup === null ? toSeconds(ticks) : cgroup.readCpuSeconds(),
    cpus: cpus ?? readMachineCpu(procRoot).cpus,
  }
}

/** Pages of files do not count: the kernel can reclaim them, and boxes share them. */
export function readMemory(
  { kind, memoryBytes, cgroup }: Scope,
  processes: readonly BoxProcess[],
  procRoot = '/proc',
): Reading['memory'] {
  if (kind === 'machine') return readMachineMemory(procRoot)
  if (cgroup === null)
    return {
      usedBytes: processes.reduce((sum, { anonymousBytes }) => sum + anonymousBytes, 0),
      totalBytes: memoryBytes,
    }
  return {
    usedBytes: cgroup.readMemoryBytes(),
    totalBytes: memoryBytes ?? readMachineMemory(procRoot).totalBytes,
  }
}

async function readMachine(procRoot: string) {
  const { seconds, cpus } = readMachineCpu(procRoot)
  const devices = readDevices(procRoot)
  const fileSystems = await Promise.all(
    listFileSystems(procRoot).map(async ({ mount, device }) => {
      const space = await readSpace(mount)
      return space === null ? [] : [{ mount, ...space, throughput: devices.get(device) ?? null }]
    }),
  )
  const disks = [...devices.values()].filter(({ isWholeDisk }) => isWholeDisk)
  return {
    cpuSeconds: seconds,
    cpus,
    load: readLoad(procRoot),
    disk: {
      readBytes: disks.reduce((sum, { readBytes }) => sum + readBytes, 0),
      writtenBytes: disks.reduce((sum, { writtenBytes }) => sum + writtenBytes, 0),
    },
    fileSystems: fileSystems.flat(),
    interfaces: readInterfaces(procRoot),
  }
}

/** Computes the space as df does: blocks that are reserved for root count neither as used nor as free. null: not readable. */
async function readSpace(mount: string): Promise<{ usedBytes: number; totalBytes: number } | null> {
  try {
    const { bsize, blocks, bfree, bavail } = await statfs(mount)
    const usedBytes = (blocks - bfree) * bsize
    return { usedBytes, totalBytes: usedBytes + bavail * bsize }
  } catch {
    // The file system was unmounted, or the mount point is hidden from this user.
    return null
  }
}
