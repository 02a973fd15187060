// Assembles the lifecycle of this coordinator's boxes: reconciler, disconnect monitor, waiting and suspending.
import pLimit from 'p-limit'
import { createDisconnectMonitor } from './disconnect-monitor.ts'
import { createDiskMonitor } from './disk-monitor.ts'
import { createReconciler, type ReconcilerOptions } from './reconciler.ts'
import { suspendLocalBoxes } from './suspend-local-boxes.ts'
import { createWaitUntilRunning, type WaitUntilRunning } from './wait-until-running.ts'

export type LifecycleOptions = Omit<ReconcilerOptions, 'machineLimit'> & {
  /** Limit of concurrent provider calls. Default: 8. */
  maxConcurrentMachines?: number
  /** How long the agent of a running box may be disconnected before the box is recovered. Default: 60 s. */
  disconnectGraceMs?: number
}

export type Lifecycle = {
  /** Continues unfinished jobs and inspects every machine that should be running. */
  start(): Promise<void>
  /** Triggers a reconciliation of the box. Call it after writing the box's desired state or job. */
  schedule(boxId: string): void
  waitUntilRunning: WaitUntilRunning
  /**
   * Closes, stops every box's machine and sets the observed state to suspended. The next start wakes the boxes.
   * @returns the names of the suspended boxes.
   */
  suspendLocalBoxes(reason: string): Promise<string[]>
  /** Resolves when the running steps have finished. Leaves machines and jobs unchanged. */
  close(): Promise<void>
}

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { db, tunnels, maxConcurrentMachines = 8, disconnectGraceMs = 60_000 } = options
  const machineLimit = pLimit(maxConcurrentMachines)
  const reconciler = createReconciler({ ...options, machineLimit })
  const { schedule, onChange } = reconciler
  const disconnectMonitor = createDisconnectMonitor({
    ...options,
    machineLimit,
    schedule,
    disconnectGraceMs,
  })

  const { sharedDisk } = options.provider
  const diskMonitor = sharedDisk && createDiskMonitor({ ...options, schedule, disk: sharedDisk })

  async function close(): Promise<void> {
    disconnectMonitor.close()
    await diskMonitor?.close()
    await reconciler.close()
  }

  return {
    schedule,
    waitUntilRunning: createWaitUntilRunning({ db, tunnels, onChange }),
    async start() {
      await reconciler.start()
      await disconnectMonitor.start()
      diskMonitor?.start()
    },
    async suspendLocalBoxes(reason) {
      await close()
      return suspendLocalBoxes({ ...options, machineLimit }, reason)
    },
    close,
  }
}
