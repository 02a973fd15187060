// The processes of the box now, for `box top`: measured only when a client asks.
import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  LIVE_COMMAND_CHARS,
  type LiveProcess,
  type LiveProcesses,
  MAX_LIVE_PROCESSES,
} from '../../../shared/api/live-processes.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import type { BoxProcess, BoxProcesses } from '../box-processes.ts'
import { displayText } from '../display-text.ts'
import type { Reading } from '../usage/reading.ts'
import { yieldEvery } from '../yield-every.ts'
import { readCommandLine } from './command-line.ts'
import { createCpuMeter } from './cpu-meter.ts'
import { createProcessIds } from './process-ids.ts'
import { MAX_MEASURED_PROCESSES, measureProcesses, USAGE_HISTORY_MS } from './process-usage.ts'
import { createStartTimes } from './start-times.ts'
import { createUserNames } from './user-names.ts'

export type LiveProcessesOptions = {
  processes: BoxProcesses
  clock: Clock
  readMemory(processes: readonly BoxProcess[]): Reading['memory']
  /** null: not known yet. */
  cpuCount(): number | null
}

export type LiveProcessReader = {
  /** @param processId only the processes that this command has started */
  read(processId?: string): Promise<LiveProcesses>
}

/** CPU time is counted in ticks of 10 ms. Clients that ask more often get the same measurement. */
const MIN_INTERVAL_MS = 1000
/** The interval of the first measurement, when no previous one is recent. */
const FIRST_INTERVAL_MS = 500
const NAME_CHARS = 64

type Measured = { process: BoxProcess; cpuPct: number; memBytes: number; processId: string | null }
type Measurement = { at: number; memory: Reading['memory']; measured: Measured[] }

/** One per agent: usage is measured between consecutive measurements, which all clients share. */
export function createLiveProcesses(options: LiveProcessesOptions): LiveProcessReader {
  const { processes, clock, readMemory, cpuCount: readCpuCount } = options
  const cpuMeter = createCpuMeter({ monotonicNow: () => performance.now(), uptimeSeconds: uptime })
  const startTimes = createStartTimes(clock, uptime)
  const processIds = createProcessIds()
  const userNames = createUserNames()
  /** Start times of the processes of the previous measurement, by pid. */
  let previousStarts = new Map<number, number>()
  let measuredAt = Number.NEGATIVE_INFINITY
  let latest: Measurement | undefined
  let running: Promise<Measurement> | undefined

  async function measureOnce(): Promise<Measurement> {
    const all = await processes.list()
    const usage = cpuMeter.measure(all)
    const cpuOf = ({ pid }: BoxProcess) => usage.get(pid) ?? 0
    const sorted = all.toSorted((a, b) => cpuOf(b) - cpuOf(a) || b.rssBytes - a.rssBytes)
    const stats = await measureProcesses(sorted.slice(0, MAX_MEASURED_PROCESSES).map(({ pid }) => pid))
    const ids = await processIds.find(all)
    const measured = all.map((process) => {
      const stat = stats.get(process.pid)
      // pidusage has no CPU usage of a process that it measures for the first time. Of processes beyond its maximum, which
      // use the least, the figures are those of the process table.
      const isKnown = previousStarts.get(process.pid) === process.startTime
      return {
        process,
        cpuPct: isKnown && stat !== undefined ? stat.cpu : cpuOf(process),
        memBytes: stat?.memory ?? process.rssBytes,
        processId: ids.get(process.pid) ?? null,
      }
    })
    previousStarts = new Map(all.map(({ pid, startTime }) => [pid, startTime]))
    measuredAt = performance.now()
    return {
      at: clock.now(),
      memory: readMemory(all),
      measured: measured.sort((a, b) => b.cpuPct - a.cpuPct || b.memBytes - a.memBytes),
    }
  }

  async function measure(): Promise<Measurement> {
    if (performance.now() - measuredAt > USAGE_HISTORY_MS) {
      await measureOnce()
      await sleep(FIRST_INTERVAL_MS)
    }
    return measureOnce()
  }

  async function readLatest(): Promise<Measurement> {
    const isRecent = performance.now() - measuredAt < MIN_INTERVAL_MS
    if (running === undefined && latest !== undefined && isRecent) return latest
    running ??= measure().finally(() => {
      running = undefined
    })
    latest = await running
    return latest
  }

  async function describe(measured: readonly Measured[]): Promise<LiveProcess[]> {
    const toStart = startTimes.read()
    const toUser = userNames.read()
    const described: LiveProcess[] = []
    for await (const { process, cpuPct, memBytes, processId } of yieldEvery(64, measured)) {
      const { pid, ppid, uid, name, state, threads, startTime } = process
      described.push({
        pid,
        ppid,
        user: toUser(uid),
        name: displayText(name, NAME_CHARS),
        command: readCommandLine(process, LIVE_COMMAND_CHARS),
        state,
        threads,
        cpuPct: roundPercent(cpuPct),
        memBytes,
        startedAt: toTimestamp(toStart(startTime)),
        processId,
        role: getRole(process),
      })
    }
    return described
  }

  return {
    async read(processId) {
      const { at, memory, measured } = await readLatest()
      const selected =
        processId === undefined ? measured : measured.filter((item) => item.processId === processId)
      const cpuCount = readCpuCount()
      const cpuSum = measured.reduce((sum, { cpuPct }) => sum + cpuPct, 0)
      return {
        ok: true,
        type: 'process.list',
        at: toTimestamp(at),
        cpuPct: cpuCount === null ? null : Math.min(100, roundPercent(cpuSum / cpuCount)),
        cpuCount,
        memUsedBytes: memory.usedBytes,
        memTotalBytes: memory.totalBytes,
        total: selected.length,
        processes: await describe(selected.slice(0, MAX_LIVE_PROCESSES)),
      }
    },
  }
}

/** The agent is a child of the init, which is not pid 1 in a box that shares the pids of its machine. */
function getRole({ pid }: BoxProcess): LiveProcess['role'] {
  if (pid === process.pid) return 'agent'
  return pid === 1 || pid === process.ppid ? 'init' : null
}

const roundPercent = (percent: number): number => Math.round(percent * 10) / 10
