// Samples the box's vitals (spec §2.2) for heartbeats.
import { statfs } from 'node:fs/promises'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import { listPids, type ProcessEntry, readProcess } from '../exec/process-table.ts'
import { agentVersion } from '../version.ts'
import type { ActivityTracker } from './activity-tracker.ts'
import { readBoxCpuTicks, readMachineCpuTicks } from './cpu.ts'
import { createListenerCounter } from './listeners.ts'
import { readBoxMemoryFraction, readMachineMemoryFraction } from './memory.ts'

export type VitalsDeps = {
  /** Default: /proc. */
  procRoot?: string
  /** Disk usage is measured on this directory's file system. */
  home: string
  clock: Clock
  activity: ActivityTracker
  /** The provider sets BOXWOOD_CPUS, BOXWOOD_MEMORY_BYTES and BOXWOOD_PRIVATE_PIDS=1. */
  env: Record<string, string | undefined>
}

export type VitalsSampler = { sample(): Promise<Vitals> }

/** CPU ticks are 10 ms, so shorter intervals are too imprecise: an earlier call returns the previous sample. */
const MIN_INTERVAL_MS = 1000

/**
 * One per agent: CPU usage is measured between consecutive samples, the first since the creation of the sampler.
 *
 * Percentages are 0 to 100 with one decimal. They are relative to the box's resource limits if these are known and the
 * box has its own PID namespace, otherwise to the whole machine.
 */
export function createVitalsSampler(deps: VitalsDeps): VitalsSampler {
  const { procRoot = '/proc', home, clock, activity, env } = deps
  const privatePids = env.BOXWOOD_PRIVATE_PIDS === '1'
  const cpus = parsePositive(env.BOXWOOD_CPUS)
  const memoryBytes = parsePositive(env.BOXWOOD_MEMORY_BYTES)
  const limits = privatePids && cpus && memoryBytes ? { cpus, memoryBytes } : undefined
  const countListeners = createListenerCounter({ procRoot, home, privatePids })

  const readUsage = () => {
    if (limits === undefined)
      return { ticks: readMachineCpuTicks(procRoot), memory: readMachineMemoryFraction(procRoot) }
    const processes = listProcesses(procRoot)
    return {
      ticks: readBoxCpuTicks(processes, limits.cpus, procRoot),
      memory: readBoxMemoryFraction(processes, limits.memoryBytes, procRoot),
    }
  }

  let previousTicks = readUsage().ticks
  let last: { at: number; vitals: Promise<Vitals> } | undefined

  const measure = async (): Promise<Vitals> => {
    const { ticks, memory } = readUsage()
    const elapsed = ticks.total - previousTicks.total
    const busy = elapsed > 0 ? (ticks.busy - previousTicks.busy) / elapsed : 0
    previousTicks = ticks
    return {
      cpu_pct: toPercent(busy),
      mem_pct: toPercent(memory),
      disk_pct: toPercent(await readDiskFraction(home)),
      idle_for_sec: activity.idleSeconds(),
      listeners_count: await countListeners(),
      agent_version: agentVersion,
    }
  }

  return {
    async sample() {
      const now = clock.now()
      const age = last === undefined ? Number.POSITIVE_INFINITY : now - last.at
      // The age is negative after the clock was set back.
      if (last === undefined || age < 0 || age >= MIN_INTERVAL_MS) last = { at: now, vitals: measure() }
      return { ...(await last.vitals), idle_for_sec: activity.idleSeconds() }
    },
  }
}

const listProcesses = (procRoot: string): ProcessEntry[] =>
  listPids(procRoot).flatMap((pid) => readProcess(pid, procRoot) ?? [])

/** The same calculation as df: blocks reserved for root count neither as used nor as free. */
async function readDiskFraction(path: string): Promise<number> {
  const { blocks, bfree, bavail } = await statfs(path)
  const used = blocks - bfree
  return used + bavail === 0 ? 0 : used / (used + bavail)
}

function parsePositive(text: string | undefined): number | undefined {
  const value = Number(text)
  return Number.isFinite(value) && value > 0 ? value : undefined
}

const toPercent = (fraction: number) => Math.round(Math.min(1, Math.max(0, fraction)) * 1000) / 10
