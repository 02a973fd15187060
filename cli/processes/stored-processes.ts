// Detached processes from the command history, which is readable while the box is not running.
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import type { ProcessFields } from '../../shared/api/processes.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Client } from '../connection/client.ts'
import { readRecords } from './read-records.ts'

/** The newest processes, as many as the box itself would list. */
export async function listStoredProcesses(client: Client, boxId: string): Promise<ProcessFields[]> {
  const processes: ProcessFields[] = []
  for await (const record of readRecords(client, boxId, { mode: 'detached' })) {
    // A process that did not start is not listed by the box either.
    if (record.status !== 'failed') processes.push(toProcessFields(record))
    if (processes.length === LIMITS.listedProcesses) break
  }
  return processes
}

const toProcessFields = (record: CommandRecord): ProcessFields => ({
  processId: record.id,
  pid: record.pid ?? 0,
  running: record.status === 'running',
  lost: record.status === 'lost',
  exitCode: record.exitCode,
  signal: record.signal,
  timedOut: record.status === 'timed_out',
  attached: false,
  startedAt: record.startedAt,
  command: record.command ?? '(not stored)',
})
