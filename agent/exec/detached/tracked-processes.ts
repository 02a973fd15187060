// The processes that the agent knows, with their monitors and subscribers.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { ActivityTracker } from '../../activity-tracker.ts'
import type { StartTimer } from '../../running-clock.ts'
import { ProcessMonitor } from './process-monitor.ts'
import { type ProcessMetadata, readStartRecord } from './record.ts'
import type { DetachedProcess } from './types.ts'

export type TrackedProcessesOptions = {
  /** State directory of all processes. */
  dir: string
  bootId: string
  clock: Clock
  startTimer: StartTimer
  log: Logger
  activity: Pick<ActivityTracker, 'startOperation'>
  /** Records the time of the output so far. Called when a process is added, and after its exit. */
  recordTimes(monitor: ProcessMonitor): void
  /** Called after a process has exited that ran when it was added. */
  onExit(): void
}

type Subscriber = (detachedProcess: DetachedProcess) => void

export class TrackedProcesses {
  readonly #options: TrackedProcessesOptions
  /** The monitors by process id, in the order of the starts. */
  readonly #monitors = new Map<string, ProcessMonitor>()
  readonly #running = new Set<ProcessMonitor>()
  readonly #subscribers = new Set<Subscriber>()

  constructor(options: TrackedProcessesOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#monitors.size
  }

  /** A copy: processes may exit while the caller iterates. */
  get running(): ProcessMonitor[] {
    return [...this.#running]
  }

  get(processId: string): ProcessMonitor | undefined {
    return this.#monitors.get(processId)
  }

  /** Newest first. */
  list(): DetachedProcess[] {
    return [...this.#monitors.values()]
      .reverse()
      .map(({ detachedProcess }) => detachedProcess)
      .sort((a, b) => b.startedAt - a.startedAt)
  }

  /** Adds a process whose directory exists. undefined when its command never started. */
  add(meta: ProcessMetadata): DetachedProcess | undefined {
    const { bootId, clock, startTimer, log, activity, recordTimes, onExit } = this.#options
    const dir = join(this.#options.dir, meta.processId)
    const startRecord = readStartRecord(dir)
    if (startRecord === undefined) return undefined
    const endActivity = activity.startOperation()
    const monitor = new ProcessMonitor({
      dir,
      meta,
      startRecord,
      bootId,
      clock,
      startTimer,
      log,
      onExit: () => {
        endActivity()
        // The process had exited before it was added.
        if (!this.#running.delete(monitor)) return
        recordTimes(monitor)
        onExit()
      },
    })
    monitor.start()
    recordTimes(monitor)
    const { detachedProcess } = monitor
    this.#monitors.set(meta.processId, monitor)
    if (detachedProcess.exit === null) this.#running.add(monitor)
    for (const subscriber of [...this.#subscribers]) this.#notify(subscriber, detachedProcess)
    return detachedProcess
  }

  delete(processId: string): void {
    this.#monitors.delete(processId)
  }

  /** Calls back for every process and for each one added later. Returns the unsubscribe function. */
  subscribe(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber)
    for (const { detachedProcess } of [...this.#monitors.values()]) this.#notify(subscriber, detachedProcess)
    return () => this.#subscribers.delete(subscriber)
  }

  /** Resolves when the terminations in progress have completed. */
  async close(): Promise<void> {
    await Promise.all([...this.#monitors.values()].map((monitor) => monitor.close()))
  }

  /** Logs errors: a failing subscriber must not affect the process. */
  #notify(subscriber: Subscriber, detachedProcess: DetachedProcess): void {
    try {
      subscriber(detachedProcess)
    } catch (err) {
      const { processId } = detachedProcess
      this.#options.log.error({ err, processId }, 'a subscriber of detached processes failed')
    }
  }
}
