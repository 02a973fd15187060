// Assembles the lifecycle of this coordinator's boxes: reconciler, monitors, waiting and suspending.
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import type { SuspendedBoxes } from '../../../shared/coordinator-process.ts'
import { withTimeout } from '../../base/timeout.ts'
import { countBoxesByObservedState } from '../store/box-lists.ts'
import { checkFrozenBoxes } from './check-frozen-boxes.ts'
import { createDisconnectMonitor } from './disconnect-monitor.ts'
import { createDiskMonitor, groupByFileSystem } from './disk-monitor.ts'
import { createHostMonitor } from './host-monitor.ts'
import { createMachineLimits } from './machine-limits.ts'
import { createReconciler, type Reconciler, type ReconcilerOptions } from './reconciler.ts'
import { suspendLocalBoxes } from './suspend-local-boxes.ts'
import { createWaitUntilRunning, type WaitUntilRunning } from './wait-until-running.ts'

export type LifecycleOptions = Omit<ReconcilerOptions, 'machineLimits'> & {
  /** Limit of concurrent calls to a provider. Default: 8. */
  maxConcurrentMachines?: number
  /** How long the agent of a running box may be disconnected, or its host without a coordinator, before the box is degraded. Default: 60 s. */
  disconnectGraceMs?: number
  /** How long a stop waits for the running steps. Default: 20 s. */
  closeTimeoutMs?: number
  /** See SuspendLocalBoxesOptions. */
  stopTimeoutMs?: number
}

export type Lifecycle = {
  /** Continues unfinished jobs and inspects every machine that should be running. */
  start(): Promise<void>
  /** Triggers a reconciliation of the box. Call it after writing the box's desired state or job. */
  schedule(boxId: string): void
  waitUntilRunning: WaitUntilRunning
  /** Calls the listener after the state or the job of a box has been written. Returns the unsubscribe function. */
  onChange: Reconciler['onChange']
  /** The number of live boxes in each observed state. Reads every live box. */
  countBoxes(): Promise<Map<ObservedState, number>>
  /**
   * Closes, stops every box's machine and sets the observed state to suspended. The next start wakes the boxes.
   * @returns the names of the boxes.
   */
  suspendLocalBoxes(reason: string): Promise<SuspendedBoxes>
  /** Resolves when the running steps have finished, or after `closeTimeoutMs`. Leaves machines and jobs unchanged. */
  close(): Promise<void>
}

const MAX_START_DELAY_MS = 5_000

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { db, log, tunnels, maxConcurrentMachines = 8, disconnectGraceMs = 60_000 } = options
  const { closeTimeoutMs = 20_000 } = options
  const machineLimits = createMachineLimits(maxConcurrentMachines)
  const reconciler = createReconciler({ ...options, machineLimits })
  const { schedule, onChange } = reconciler
  const disconnectMonitor = createDisconnectMonitor({
    ...options,
    machineLimits,
    schedule,
    disconnectGraceMs,
  })

  const hostMonitor = createHostMonitor({ ...options, schedule, graceMs: disconnectGraceMs })

  const diskMonitors = groupByFileSystem(options.providers.byRegion).map((disks) =>
    createDiskMonitor({ ...options, schedule, disks }),
  )

  let closed: Promise<void> | undefined
  async function closeOnce(): Promise<void> {
    disconnectMonitor.close()
    hostMonitor.close()
    const steps = Promise.all([...diskMonitors.map((monitor) => monitor.close()), reconciler.close()])
    await withTimeout(steps, closeTimeoutMs, `lifecycle steps run for more than ${closeTimeoutMs} ms`).catch(
      (err: unknown) => log.error({ err }, 'stopping without waiting for lifecycle steps'),
    )
  }
  function close(): Promise<void> {
    closed ??= closeOnce()
    return closed
  }

  return {
    schedule,
    onChange,
    countBoxes: () => countBoxesByObservedState(db),
    waitUntilRunning: createWaitUntilRunning({ db, tunnels, onChange }),
    async start() {
      await reconciler.start()
      await disconnectMonitor.start()
      await hostMonitor.start()
      const checking = checkFrozenBoxes({ ...options, machineLimits, schedule })
      // An engine that does not answer must not delay the start: the check continues.
      await Promise.race([checking, sleep(MAX_START_DELAY_MS, undefined, { ref: false })])
      for (const monitor of diskMonitors) monitor.start()
    },
    async suspendLocalBoxes(reason) {
      await close()
      // A limit of its own: a provider call that does not return keeps its slot.
      const stopLimit = pLimit(maxConcurrentMachines)
      return suspendLocalBoxes({ ...options, machineLimit: stopLimit }, reason)
    },
    close,
  }
}
