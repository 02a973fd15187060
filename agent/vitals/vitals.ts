// Starts the sampler with its tasks, and stops it.
import type { Logger } from 'pino'
import type { CodingAgents, Vitals } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import type { Spool } from '../reports/spool.ts'
import { type BoxMetrics, createBoxMetrics } from './box-metrics.ts'
import { type BoxProcesses, createBoxProcesses } from './box-processes.ts'
import { createListeners, type Listeners } from './listeners.ts'
import { startMachineReport } from './machine-report.ts'
import { createLiveProcesses, type LiveProcessReader } from './processes/live-processes.ts'
import { createProcessSnapshots } from './processes/snapshots.ts'
import { createSampler } from './sampler.ts'
import { readScope } from './scope.ts'
import { createDiskSpaceMeter } from './usage/disk-space.ts'
import { createReader, readMemory } from './usage/reading.ts'

export type VitalsDeps = {
  boxId: string
  home: string
  stateDir: string
  env: Record<string, string | undefined>
  spool: Spool
  log: Logger
  /** The coordinator's time, where it is known. */
  clock: Clock
  /** Milliseconds of running time: a sample after a freeze describes only the time in which the box ran. */
  monotonicNow: () => number
  activity: ActivityTracker
  idleCpuPercent: number
  /** Returns the readiness of the coding agents. */
  readCodingAgents?: (() => CodingAgents) | undefined
  /** The port of the proxy for secrets. */
  readAgentPort?: (() => number | null) | undefined
}

export type VitalsService = {
  /** Returns the vitals for a heartbeat. */
  read(): Vitals
  readActivity: BoxMetrics['readActivity']
  listeners: Listeners
  liveProcesses: LiveProcessReader
  boxProcesses: BoxProcesses
  /** Whether the box has its own network: all sockets belong to it. */
  ownNetwork: boolean
  close(): Promise<void>
}

export async function startVitals(deps: VitalsDeps): Promise<VitalsService> {
  const { boxId, home, stateDir, env, spool, log, clock, monotonicNow, activity, idleCpuPercent } = deps
  const { readCodingAgents, readAgentPort } = deps
  const scope = readScope({ boxId, env })
  const boxProcesses = createBoxProcesses({ membership: scope.membership })
  const listeners = createListeners({
    processes: boxProcesses,
    ownNetwork: scope.ownNetwork,
    readAgentPort,
  })
  const tempDirs = scope.membership === null ? ['/tmp', '/var/tmp'] : [env.TMPDIR ?? []].flat()
  const diskSpace = createDiskSpaceMeter({ directories: [home, stateDir, ...tempDirs], log })
  const metrics = await createBoxMetrics({
    home,
    log,
    activity,
    idleCpuPercent,
    read: createReader({ scope, home, boxProcesses, diskSpace, monotonicNow }),
    countListeners: listeners.count,
    append: (report) => void spool.appendOptional(report),
  })
  const machineReport = startMachineReport(spool, log, metrics.machineSize)
  const sampler = createSampler({ clock, log, monotonicNow })
  sampler.add({ name: 'listeners', everySeconds: 1, run: listeners.poll })
  sampler.add(metrics.task)
  sampler.add(
    createProcessSnapshots({
      processes: boxProcesses,
      listeners,
      clock,
      monotonicNow,
      append: (report) => spool.appendOptional(report),
    }),
  )

  return {
    read: () => ({
      ...metrics.vitals(),
      ...(readCodingAgents && { coding_agents: readCodingAgents() }),
    }),
    readActivity: metrics.readActivity,
    listeners,
    boxProcesses,
    ownNetwork: scope.ownNetwork,
    liveProcesses: createLiveProcesses({
      processes: boxProcesses,
      clock,
      readMemory: (processes) => readMemory(scope, processes),
      cpuCount: () => metrics.machineSize().cpuCount,
    }),
    async close() {
      await machineReport.close()
      await sampler.close()
      await diskSpace.close()
    },
  }
}
