// The runs of a box. The state directory is the source of truth; the maps in memory are a cache.
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { removeDirectory } from '../../exec/detached/record.ts'
import type { Retention } from '../../exec/detached/retention.ts'
import type { DetachedProcess, DetachedProcesses } from '../../exec/detached/types.ts'
import { type ChangeNotifier, createChangeNotifier } from '../change-notifier.ts'
import type { Checkpoint } from '../events/checkpoints.ts'
import { LOG_START } from '../events/event-decoder.ts'
import type { FollowerStart } from '../events/log-follower.ts'
import type { Provider } from '../providers/types.ts'
import type { ProviderDetector, RunState, Runs, StartRunOptions } from '../types.ts'
import { type RunOutput, readRunEvents, readRunStatus } from './read-run.ts'
import { readStart, restoreRecords } from './restore-runs.ts'
import { type ActiveRun, followRun } from './run.ts'
import { toRun, toRunState } from './run-fields.ts'
import { createRunRecord, type RunRecord, toProcessId, withUnstartedResult } from './run-record.ts'
import { DEFAULT_RUN_RETENTION, findExpiredRuns } from './run-retention.ts'
import { createRunSequence } from './run-sequence.ts'
import { prepareCommand, startCommand, writeUnstartedRun } from './start-process.ts'
import { readStopRecord, removeStopRecord, writeStopRecord } from './stop-record.ts'

export type RunsOptions = {
  /** State directory of prompts, absolute. Created when missing. */
  dir: string
  /** Of these runs only. Its retention must not delete a process by itself. */
  processes: DetachedProcesses
  providers: Record<ProviderName, Provider>
  detector: ProviderDetector
  clock: Clock
  log: FastifyBaseLogger
  /** Time limit of a run. */
  minutes: number
  retention?: Partial<Retention>
  /** Bytes of output between two checkpoints, at least. Small compared with the bound of a log. */
  checkpointBytes?: number
}

const CHECKPOINT_BYTES = 256 * 1024
const PRUNE_MS = 60 * 60 * 1000

type Entry = {
  record: RunRecord
  state: RunState
  /** null when the run has ended. */
  active: ActiveRun | null
  /** Of the state. */
  changes: ChangeNotifier
}
const createEndedEntry = (record: RunRecord): Entry => ({
  ...{ record, state: toRunState(record), active: null, changes: createChangeNotifier() },
})

/** Restores the runs from the state directory. One agent at a time: see lock.ts. */
export async function createRuns(options: RunsOptions): Promise<Runs> {
  const { dir, processes, providers, detector, clock, log, minutes } = options
  const { checkpointBytes = CHECKPOINT_BYTES } = options
  const retention = { ...DEFAULT_RUN_RETENTION, ...options.retention }
  const runsDir = join(dir, 'runs')
  const getRunDir = (id: string) => join(runsDir, id)

  // Oldest first.
  const entries = new Map<string, Entry>()
  const starting = new Map<string, Promise<RunState>>()
  const launches = new Set<Promise<unknown>>()
  const subscribers = new Set<(run: RunState) => void>()
  const background = new Set<Promise<void>>()
  const closing = new AbortController()
  let stopRequestedAt: number | null = null
  const sequence = createRunSequence()

  const inBackground = (work: Promise<unknown>, message: string) => {
    const done = work
      .then(
        () => undefined,
        (err: unknown) => log.error({ err }, message),
      )
      .finally(() => background.delete(done))
    background.add(done)
  }
  /** Logs errors: a failing subscriber must not affect the run. */
  const notify = (run: RunState) => {
    entries.get(run.id)?.changes.notify()
    for (const callback of [...subscribers]) {
      try {
        callback(run)
      } catch (err) {
        log.error({ err, runId: run.id }, 'a subscriber of runs failed')
      }
    }
  }
  const getEntry = (id: string): Entry => {
    const entry = entries.get(id)
    if (entry === undefined) throw new ApiError('not_found', `Run ${id} not found. Check the id.`)
    return entry
  }

  async function remove(id: string): Promise<void> {
    const entry = entries.get(id)
    if (entry === undefined || entry.active !== null) return
    entries.delete(id)
    // restoreRecords() removes a process without a run.
    await removeDirectory(getRunDir(id))
    await processes.remove(toProcessId(id))
  }
  const prune = () => {
    const records = [...entries.values()].map(({ record }) => record)
    for (const id of findExpiredRuns(records, clock.now(), retention))
      inBackground(remove(id), 'failed to delete a run')
  }

  function track(
    record: RunRecord,
    detachedProcess: DetachedProcess,
    start: FollowerStart,
    getStopRequestedAt: () => number | null,
  ): Promise<unknown> {
    const active = followRun({
      ...{ record, detachedProcess, processes, start, checkpointBytes, clock, log, getStopRequestedAt },
      ...{ runDir: getRunDir(record.id), provider: providers[record.provider] },
      onChange(state) {
        entry.state = state
        notify(state)
      },
    })
    const entry: Entry = { record, state: active.state, active, changes: createChangeNotifier() }
    entries.set(record.id, entry)
    const ended = active.ended.then((endedRecord) => {
      if (endedRecord === null) return
      Object.assign(entry, { record: endedRecord, state: toRunState(endedRecord), active: null })
      notify(entry.state)
      prune()
    })
    inBackground(ended, 'failed to follow a run')
    return ended
  }

  async function restore(): Promise<void> {
    const previousStop = readStopRecord(dir)
    const ends: Promise<unknown>[] = []
    for (const record of await restoreRecords(runsDir, processes, log)) {
      sequence.restore(record.sequence)
      const detachedProcess = processes.get(toProcessId(record.id))
      if (record.result !== null || detachedProcess === undefined) {
        entries.set(record.id, createEndedEntry(record))
        continue
      }
      const runDir = getRunDir(record.id)
      const origin = createOrigin(record)
      const start = await readStart(detachedProcess.logs.stdout, runDir, origin).catch((err: unknown) => {
        // For example, the log was replaced.
        log.error({ err, runId: record.id }, 'failed to read the output of a run; reading it from the start')
        return { position: origin, checkpoints: [], exactFrom: Number.POSITIVE_INFINITY }
      })
      const hasExited = detachedProcess.exit !== null
      const ended = track(record, detachedProcess, start, () => (hasExited ? previousStop : stopRequestedAt))
      if (hasExited) ends.push(ended)
    }
    if (previousStop === null) return
    const forget = async () => {
      await Promise.all(ends)
      if (!closing.signal.aborted && stopRequestedAt === null) removeStopRecord(dir)
    }
    inBackground(forget(), 'failed to remove the record of the stop')
  }

  const createRecord = (request: Omit<StartRunOptions, 'boxEnv'>): RunRecord => {
    const startedAt = clock.now()
    return createRunRecord(request, { minutes, startedAt, sequence: sequence.next(startedAt) })
  }

  async function startOnce(request: StartRunOptions, signals: readonly AbortSignal[]): Promise<RunState> {
    const runDir = getRunDir(request.id)
    const provider = providers[request.provider]
    const command = await prepareCommand({ provider, detector, signals }, runDir, request)
    const record = createRecord(request)
    const launch = async () => {
      const detachedProcess = await startCommand(processes, runDir, {
        record,
        prompt: request.prompt,
        command,
      })
      const start = { position: createOrigin(record), checkpoints: [], exactFrom: 0 }
      void track(record, detachedProcess, start, () => stopRequestedAt)
    }
    const launched = launch().finally(() => {
      launches.delete(launched)
      sequence.settle(record.sequence)
    })
    launches.add(launched)
    await launched
    const { state } = getEntry(request.id)
    notify(state)
    return state
  }
  async function recordUnstartedOnce(...[request, result]: Parameters<Runs['recordUnstarted']>) {
    const record = withUnstartedResult(createRecord(request), result)
    try {
      await writeUnstartedRun(getRunDir(record.id), { record, prompt: request.prompt })
      entries.set(record.id, createEndedEntry(record))
    } finally {
      sequence.settle(record.sequence)
    }
    const { state } = getEntry(record.id)
    notify(state)
    prune()
    return state
  }
  const startById = (id: string, start: () => Promise<RunState>): Promise<RunState> => {
    const known = entries.get(id)?.state ?? starting.get(id)
    if (known !== undefined) return Promise.resolve(known)
    if (closing.signal.aborted) return Promise.reject(closing.signal.reason)
    const started = start().finally(() => starting.delete(id))
    starting.set(id, started)
    return started
  }

  const getOutput = ({ record, active }: Entry): RunOutput => ({
    ...{ record, follower: active?.follower ?? null, runDir: getRunDir(record.id) },
    ...{ provider: providers[record.provider], detachedProcess: processes.get(toProcessId(record.id)) },
  })

  await restore()
  prune()
  const pruneTimer = setInterval(prune, PRUNE_MS).unref()

  return {
    start: (request, signal) =>
      startById(request.id, () => startOnce(request, signal ? [signal, closing.signal] : [closing.signal])),
    recordUnstarted: (request, result) => startById(request.id, () => recordUnstartedOnce(request, result)),
    get: (id) => entries.get(id)?.state,
    list: () => [...entries.values()].reverse().map(({ state }) => state),
    sequence: sequence.current,
    readStatus: async (id) => {
      const entry = getEntry(id)
      return readRunStatus(entry.state, getOutput(entry))
    },
    async readEvents(id, { after, limit, waitMs, signal }) {
      const deadline = performance.now() + waitMs
      for (;;) {
        const entry = getEntry(id)
        const seen = entry.changes.version()
        // Copied before the page is read: the run may end meanwhile.
        const { state, active } = entry
        const { events, next, reachedEnd } = await readRunEvents(getOutput(entry), { after, limit, signal })
        const finished = active === null && reachedEnd
        const remainingMs = deadline - performance.now()
        const mustReturn = next > after || finished || remainingMs <= 0
        if (mustReturn || signal.aborted || closing.signal.aborted)
          return { ok: true, type: 'prompt.events', run: toRun(state), events, next, finished }
        await entry.changes.wait(seen, remainingMs, [signal, closing.signal])
      }
    },
    async interrupt(id, cause) {
      // A failed start is reported to the caller of start().
      await starting.get(id)?.catch(() => undefined)
      const { active } = getEntry(id)
      const signal = (await active?.interrupt(cause)) ?? null
      return { wasRunning: signal !== null, signal }
    },
    remove,
    subscribe(callback) {
      subscribers.add(callback)
      return () => void subscribers.delete(callback)
    },
    expectStop() {
      stopRequestedAt ??= clock.now()
      try {
        writeStopRecord(dir, stopRequestedAt)
      } catch (err) {
        // Only a run that ends after the agent is affected: its status is failed.
        log.error({ err }, 'failed to record that the box stops')
      }
    },
    async close() {
      closing.abort(new ApiError('exec_failed', 'The agent is stopping. Try again.'))
      clearInterval(pruneTimer)
      await Promise.allSettled(launches)
      await Promise.all([...entries.values()].map(({ active }) => active?.close()))
      await Promise.all(background)
    },
  }
}

const createOrigin = ({ startedAt }: RunRecord): Checkpoint => ({ ...LOG_START, at: startedAt })
