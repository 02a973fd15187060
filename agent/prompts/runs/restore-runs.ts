// Reads the runs of earlier agents from disk, and removes what a killed agent left incomplete.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { RUN_ID_PATTERN } from '../../../shared/field-values.ts'
import { isPendingRemoval, removeDirectory } from '../../exec/detached/record.ts'
import type { DetachedProcesses, OutputLog } from '../../exec/detached/types.ts'
import { readCheckpoints, readPosition } from '../events/checkpoints.ts'
import { type FollowerStart, findStart } from '../events/log-follower.ts'
import type { BackgroundTasks } from './background-tasks.ts'
import { removeTree } from './remove-tree.ts'
import { createOrigin, type RunRecord, readRecord, toProcessId } from './run-record.ts'
import type { RunSequence } from './run-sequence.ts'
import type { RunTable } from './run-table.ts'
import type { RunTracker } from './run-tracker.ts'
import type { StopRecord } from './stop-record.ts'

export type RestoreDeps = {
  runsDir: string
  processes: DetachedProcesses
  table: RunTable
  tracker: RunTracker
  sequence: RunSequence
  background: BackgroundTasks
  stop: StopRecord
  log: Logger
  /** Aborts when the agent stops. */
  closing: AbortSignal
}

/** Fills the table with the stored runs, and follows those whose end is not recorded. */
export async function restoreRuns(deps: RestoreDeps): Promise<void> {
  const { runsDir, processes, table, tracker, sequence, background, stop, log, closing } = deps
  const previousStop = stop.readPrevious()
  // The runs that ended while no agent was running.
  const ends: Promise<unknown>[] = []
  for (const record of await restoreRecords(runsDir, processes, log)) {
    sequence.restore(record.sequence)
    const detachedProcess = processes.get(toProcessId(record.id))
    if (record.result !== null || detachedProcess === undefined) {
      table.add(record, null)
      continue
    }
    const start = await readStart(record, join(runsDir, record.id), detachedProcess.logs.stdout, log)
    const hasExited = detachedProcess.exit !== null
    const getStopRequestedAt = () => (hasExited ? previousStop : stop.requestedAt)
    const ended = tracker.track({ record, detachedProcess, start, getStopRequestedAt })
    if (hasExited) ends.push(ended)
  }
  if (previousStop === null) return
  const forget = async () => {
    await Promise.all(ends)
    if (!closing.aborted) stop.forgetPrevious()
  }
  background.add(forget(), 'failed to remove the record of the stop')
}

/**
 * Returns the runs that have ended or whose process has started, oldest first. A run that cannot be read or removed now is
 * left for the next start.
 */
async function restoreRecords(
  runsDir: string,
  processes: DetachedProcesses,
  log: Logger,
): Promise<RunRecord[]> {
  await mkdir(runsDir, { recursive: true, mode: 0o700 })
  const records: RunRecord[] = []
  const known = new Set<string>()

  async function restore(name: string): Promise<void> {
    const runDir = join(runsDir, name)
    // An earlier agent was killed while it removed the directory.
    if (isPendingRemoval(name)) await removeTree(runDir)
    if (!RUN_ID_PATTERN.test(name)) return
    const record = readRecord(runDir)
    const hasStarted = processes.get(toProcessId(name)) !== undefined
    if (record !== undefined && (record.result !== null || hasStarted)) {
      records.push(record)
      known.add(toProcessId(name))
      return
    }
    // Either the agent was killed before it acknowledged the start, or a power loss has damaged the record.
    if (hasStarted) log.error({ runId: name }, 'the record of a run is damaged; the run is deleted')
    await removeDirectory(runDir)
  }
  for (const name of await readdir(runsDir))
    await restore(name).catch((err: unknown) => {
      known.add(toProcessId(name))
      log.error({ err, name }, 'failed to restore a run; the next start of the agent will retry')
    })
  for (const { processId } of processes.list()) {
    if (known.has(processId)) continue
    await endProcess(processId).catch((err: unknown) =>
      log.error({ err, processId }, 'failed to remove the process of a run that is not recorded'),
    )
  }
  return records.sort(
    (a, b) => a.sequence - b.sequence || a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1),
  )

  async function endProcess(processId: string): Promise<void> {
    await processes.kill(processId)
    await processes.remove(processId)
  }
}

/** Finds where to continue to read the output of a run in progress. */
async function readStart(
  record: RunRecord,
  runDir: string,
  output: OutputLog,
  log: Logger,
): Promise<FollowerStart> {
  const origin = createOrigin(record)
  try {
    const saved = { checkpoints: readCheckpoints(runDir), position: readPosition(runDir) }
    return await findStart(output, saved, origin)
  } catch (err) {
    // For example, the log was replaced.
    log.error({ err, runId: record.id }, 'failed to read the output of a run; reading it from the start')
    return { position: origin, checkpoints: [], exactFrom: Number.POSITIVE_INFINITY }
  }
}
