// Reads the runs of earlier agents from disk, and removes what a killed agent left incomplete.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { RUN_ID_PATTERN } from '../../../shared/api/prompts.ts'
import { isPendingRemoval, removeDirectory } from '../../exec/detached/record.ts'
import type { DetachedProcesses, OutputLog } from '../../exec/detached/types.ts'
import { type Checkpoint, readCheckpoints, readPosition } from '../events/checkpoints.ts'
import { type FollowerStart, findStart } from '../events/log-follower.ts'
import { removeTree } from './remove-tree.ts'
import { type RunRecord, readRecord, toProcessId } from './run-record.ts'

/**
 * Returns the runs that have ended or whose process has started, oldest first. A run that cannot be read or removed now is
 * left for the next start.
 */
export async function restoreRecords(
  runsDir: string,
  processes: DetachedProcesses,
  log: FastifyBaseLogger,
): Promise<RunRecord[]> {
  await mkdir(runsDir, { recursive: true, mode: 0o700 })
  const records: RunRecord[] = []
  const known = new Set<string>()

  async function restore(name: string): Promise<void> {
    const runDir = join(runsDir, name)
    // The agent was killed during the removal.
    if (isPendingRemoval(name)) await removeTree(runDir)
    if (!RUN_ID_PATTERN.test(name)) return
    const record = readRecord(runDir)
    const hasStarted = processes.get(toProcessId(name)) !== undefined
    if (record !== undefined && (record.result !== null || hasStarted)) {
      records.push(record)
      known.add(toProcessId(name))
      return
    }
    // The agent was killed during the start, which it had not acknowledged; or a power loss has damaged the record.
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

/** Where to continue to read the output of a run in progress. @throws system errors */
export const readStart = async (
  output: OutputLog,
  runDir: string,
  origin: Checkpoint,
): Promise<FollowerStart> =>
  findStart(output, { checkpoints: readCheckpoints(runDir), position: readPosition(runDir) }, origin)
