// Reports the box's processes and listening ports every minute, as differences from the previous snapshot.
import { uptime } from 'node:os'
import type { ProcessSnapshotReport } from '../../../shared/api/process-snapshots.ts'
import type { Clock } from '../../../shared/clock.ts'
import {
  createDelta,
  EMPTY_SNAPSHOT,
  type ProcessSnapshot,
  type SnapshotEntry,
} from '../../../shared/process-delta.ts'
import {
  MAX_SNAPSHOT_PROCESSES,
  SNAPSHOT_COMMAND_CHARS,
  SNAPSHOT_SECONDS,
} from '../../../shared/report-limits.ts'
import type { BoxProcess, BoxProcesses } from '../box-processes.ts'
import { displayText } from '../display-text.ts'
import type { Listeners } from '../listeners.ts'
import type { SamplerTask } from '../sampler.ts'
import { yieldEvery } from '../yield-every.ts'
import { readCommandLine } from './command-line.ts'
import { createCpuMeter } from './cpu-meter.ts'
import { roundMemory } from './round-memory.ts'
import { fitSnapshot } from './snapshot-size.ts'
import { createStartTimes } from './start-times.ts'
import { createUserNames } from './user-names.ts'

export type ProcessSnapshotsOptions = {
  procRoot?: string
  passwdPath?: string
  processes: BoxProcesses
  listeners: Pick<Listeners, 'current'>
  /** The coordinator's time, where it is known. */
  clock: Clock
  /** False: the report was dropped. */
  append(report: ProcessSnapshotReport): boolean
  /** Milliseconds of a clock that is never set. */
  monotonicNow?: () => number
  /** Since the boot. */
  uptimeSeconds?: () => number
}

const HOUR_MS = 3_600_000
const NAME_CHARS = 64

export function createProcessSnapshots(options: ProcessSnapshotsOptions): SamplerTask {
  const { procRoot, passwdPath, processes, listeners, clock, append } = options
  const { monotonicNow = () => performance.now(), uptimeSeconds = uptime } = options
  const cpuMeter = createCpuMeter({ monotonicNow, uptimeSeconds })
  const startTimes = createStartTimes(clock, uptimeSeconds)
  const userNames = createUserNames(passwdPath)
  /** The last snapshot that was appended. */
  let previous: { at: number; isNewest: boolean; snapshot: ProcessSnapshot } | undefined
  let newestAt = 0

  async function takeSnapshot(): Promise<ProcessSnapshot> {
    const all = await processes.list()
    const usage = cpuMeter.measure(all)
    const listed = all
      .map((process) => ({ process, cpuTenths: Math.round((usage.get(process.pid) ?? 0) * 10) }))
      .sort((a, b) => b.cpuTenths - a.cpuTenths || b.process.rssBytes - a.process.rssBytes)
      .slice(0, MAX_SNAPSHOT_PROCESSES)
    const toStart = startTimes.read()
    const toUser = userNames.read()
    const createEntry = (process: BoxProcess, cpuTenths: number): SnapshotEntry => {
      const { pid, ppid, startTime, uid, name, rssBytes } = process
      const command = readCommandLine(process, SNAPSHOT_COMMAND_CHARS, procRoot)
      return {
        process: [pid, ppid, toStart(startTime), toUser(uid), displayText(name, NAME_CHARS), command],
        cpuTenths,
        rssKiB: roundMemory(rssBytes / 1024),
      }
    }
    const entries = new Map<number, SnapshotEntry>()
    for await (const { process, cpuTenths } of yieldEvery(64, listed))
      entries.set(process.pid, createEntry(process, cpuTenths))
    return fitSnapshot({ processes: entries, ports: listeners.current() ?? [], total: all.length })
  }

  /** The coordinator needs a complete snapshot in each hour, and after the clock was set back. */
  function findBase(at: number): typeof previous {
    if (!previous?.isNewest || previous.at >= at) return undefined
    return Math.floor(previous.at / HOUR_MS) === Math.floor(at / HOUR_MS) ? previous : undefined
  }

  return {
    name: 'process snapshot',
    everySeconds: SNAPSHOT_SECONDS,
    async run() {
      // The exact time: it identifies the snapshot, also when the agent restarts within a minute.
      const at = Math.round(clock.now())
      const snapshot = await takeSnapshot()
      const base = findBase(at)
      const delta = JSON.stringify(createDelta(base?.snapshot ?? EMPTY_SNAPSHOT, snapshot))
      if (!append({ type: 'processes.snapshot', at, previousAt: base?.at ?? null, delta })) return
      previous = { at, isNewest: at > newestAt, snapshot }
      newestAt = Math.max(newestAt, at)
    },
  }
}
