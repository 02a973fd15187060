// Reads the runs of earlier agents from disk, and removes what a killed agent left incomplete.
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { RUN_ID_PATTERN } from '../../shared/api/prompts.ts'
import { isPendingRemoval, removeDirectory } from '../exec/detached/record.ts'
import type { DetachedProcesses } from '../exec/detached/types.ts'
import { type RunRecord, readRecord, toProcessId } from './run-record.ts'

/** Returns the runs that have ended or whose process has started, oldest first. */
export async function restoreRecords(
  runsDir: string,
  processes: DetachedProcesses,
  log: FastifyBaseLogger,
): Promise<RunRecord[]> {
  await mkdir(runsDir, { recursive: true, mode: 0o700 })
  const records: RunRecord[] = []
  for (const name of await readdir(runsDir)) {
    const runDir = join(runsDir, name)
    // The agent was killed during the removal.
    if (isPendingRemoval(name)) await rm(runDir, { recursive: true, force: true })
    if (!RUN_ID_PATTERN.test(name)) continue
    const record = readRecord(runDir)
    const hasStarted = processes.get(toProcessId(name)) !== undefined
    if (record !== undefined && (record.result !== null || hasStarted)) records.push(record)
    else {
      // The agent was killed during the start, which it had not acknowledged; or a power loss has damaged the record.
      if (hasStarted) log.error({ runId: name }, 'the record of a run is damaged; the run is deleted')
      await removeDirectory(runDir)
    }
  }
  const known = new Set(records.map(({ id }) => toProcessId(id)))
  for (const { processId } of processes.list()) {
    if (known.has(processId)) continue
    await processes.kill(processId)
    await processes.remove(processId)
  }
  return records.sort(
    (a, b) => a.sequence - b.sequence || a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1),
  )
}
