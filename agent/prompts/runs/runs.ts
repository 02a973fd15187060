// The runs of a box. The state directory is the source of truth; the table of runs in memory is a cache.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { Retention } from '../../exec/detached/retention.ts'
import type { DetachedProcesses } from '../../exec/detached/types.ts'
import { type StartTimer, startWallTimer } from '../../running-clock.ts'
import type { Provider } from '../providers/types.ts'
import type { ProviderDetector, Runs } from '../types.ts'
import { BackgroundTasks } from './background-tasks.ts'
import { restoreRuns } from './restore-runs.ts'
import { RunReader } from './run-reader.ts'
import { RunRemover } from './run-remover.ts'
import { DEFAULT_RUN_RETENTION } from './run-retention.ts'
import { createRunSequence } from './run-sequence.ts'
import { RunStarter } from './run-starter.ts'
import { RunTable } from './run-table.ts'
import { RunTracker } from './run-tracker.ts'
import { StopRecord } from './stop-record.ts'

export type RunsOptions = {
  /** State directory of prompts, absolute. Created when missing. */
  dir: string
  /** Processes of runs only. Their own retention must not delete a process. */
  processes: DetachedProcesses
  providers: Record<ProviderName, Provider>
  detector: ProviderDetector
  clock: Clock
  /** Default: a timer that also counts the time in which the box is frozen. */
  startTimer?: StartTimer
  log: Logger
  /** The time limit of a run. */
  minutes: number
  retention?: Partial<Retention>
  /** The least bytes of output between two checkpoints, which must be small compared with the bound of a log. */
  checkpointBytes?: number
}

const CHECKPOINT_BYTES = 256 * 1024

/** Restores the runs from the state directory. One agent at a time: see lock.ts. */
export async function createRuns(options: RunsOptions): Promise<Runs> {
  const { dir, clock, log } = options
  const controller = new AbortController()
  const table = new RunTable(log)
  const background = new BackgroundTasks(log)
  const context = {
    ...options,
    runsDir: join(dir, 'runs'),
    checkpointBytes: options.checkpointBytes ?? CHECKPOINT_BYTES,
    startTimer: options.startTimer ?? startWallTimer,
    retention: { ...DEFAULT_RUN_RETENTION, ...options.retention },
    table,
    background,
    sequence: createRunSequence(),
    stop: new StopRecord(dir, clock, log),
    closing: controller.signal,
  }
  const remover = new RunRemover(context)
  const tracker = new RunTracker({ ...context, onEnd: () => remover.prune() })
  const starter = new RunStarter({ ...context, tracker, remover })
  const reader = new RunReader(context)
  await restoreRuns({ ...context, tracker })
  remover.start()

  return {
    start: (request, signal) => starter.start(request, signal),
    recordUnstarted: (request, result) => starter.recordUnstarted(request, result),
    get: (id) => table.find(id)?.state,
    list: () =>
      table
        .list()
        .reverse()
        .map(({ state }) => state),
    sequence: context.sequence.current,
    readStatus: (id) => reader.readStatus(id),
    readEvents: (id, readOptions) => reader.readEvents(id, readOptions),
    async interrupt(id, cause) {
      await starter.waitForStart(id)
      const { active } = table.get(id)
      const signal = (await active?.interrupt(cause)) ?? null
      return { wasRunning: signal !== null, signal }
    },
    remove: (id) => remover.remove(id),
    subscribe: (callback) => table.subscribe(callback),
    expectStop: () => context.stop.expect(),
    async close() {
      controller.abort(new ApiError('exec_failed', 'The agent is stopping. Try again.'))
      remover.close()
      await starter.close()
      await tracker.close()
      await background.settle()
    },
  }
}
