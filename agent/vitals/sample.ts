// The box's vitals (spec §2.2), as every heartbeat carries them.
import { statfs } from 'node:fs/promises'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import { AGENT_VERSION } from '../../shared/protocol.ts'
import { listPids, type ProcessEntry, readProcess } from '../exec/process-table.ts'
import type { Activity } from './activity.ts'
import { allotmentTicks, machineTicks } from './cpu.ts'
import { createListenerCounter } from './listeners.ts'
import { allotmentMemoryPart, machineMemoryPart } from './memory.ts'

export type VitalsDeps = {
  /** Where the kernel's tables are; default /proc. */
  procRoot?: string
  /** The disk that counts is the one this stands on. */
  home: string
  clock: Clock
  activity: Activity
  /** BOXWOOD_CPUS, BOXWOOD_MEMORY_BYTES and BOXWOOD_PRIVATE_PIDS=1, set by what made the box. */
  env: Record<string, string | undefined>
}

export type VitalsSampler = { sample(): Promise<Vitals> }

/** Over less time than this, CPU ticks of 10 ms say little: whoever asks sooner gets the last figures. */
const SHORTEST_INTERVAL_MS = 1000

/**
 * One per agent: CPU is measured from one sample to the next (the first: from the creation of the sampler).
 *
 * Percentages are of the box's allotment, when that is known and the process table holds this box alone; else of the
 * machine. 0 to 100, one decimal.
 */
export function createVitalsSampler(deps: VitalsDeps): VitalsSampler {
  const { procRoot = '/proc', home, clock, activity, env } = deps
  const privatePids = env.BOXWOOD_PRIVATE_PIDS === '1'
  const cpus = positive(env.BOXWOOD_CPUS)
  const memoryBytes = positive(env.BOXWOOD_MEMORY_BYTES)
  const allotment = privatePids && cpus && memoryBytes ? { cpus, memoryBytes } : undefined
  const countListeners = createListenerCounter({ procRoot, home, privatePids })

  const look = () => {
    if (allotment === undefined) return { ticks: machineTicks(procRoot), memory: machineMemoryPart(procRoot) }
    const processes = allProcesses(procRoot)
    return {
      ticks: allotmentTicks(processes, allotment.cpus, procRoot),
      memory: allotmentMemoryPart(processes, allotment.memoryBytes, procRoot),
    }
  }

  let before = look().ticks
  let last: { at: number; vitals: Promise<Vitals> } | undefined

  const measure = async (): Promise<Vitals> => {
    const { ticks, memory } = look()
    const elapsed = ticks.total - before.total
    const busy = elapsed > 0 ? (ticks.busy - before.busy) / elapsed : 0
    before = ticks
    return {
      cpu_pct: percent(busy),
      mem_pct: percent(memory),
      disk_pct: percent(await diskPart(home)),
      idle_for_sec: activity.idleSeconds(),
      listeners_count: await countListeners(),
      agent_version: AGENT_VERSION,
    }
  }

  return {
    async sample() {
      const now = clock.now()
      const age = last === undefined ? Number.POSITIVE_INFINITY : now - last.at
      // A clock that was set back makes the age negative: then measure, too.
      if (last === undefined || age < 0 || age >= SHORTEST_INTERVAL_MS) last = { at: now, vitals: measure() }
      return { ...(await last.vitals), idle_for_sec: activity.idleSeconds() }
    },
  }
}

const allProcesses = (procRoot: string): ProcessEntry[] =>
  listPids(procRoot).flatMap((pid) => readProcess(pid, procRoot) ?? [])

/** As df says it: blocks kept for root are neither used nor free. */
async function diskPart(path: string): Promise<number> {
  const { blocks, bfree, bavail } = await statfs(path)
  const used = blocks - bfree
  return used + bavail === 0 ? 0 : used / (used + bavail)
}

function positive(text: string | undefined): number | undefined {
  const value = Number(text)
  return Number.isFinite(value) && value > 0 ? value : undefined
}

const percent = (part: number) => Math.round(Math.min(1, Math.max(0, part)) * 1000) / 10
