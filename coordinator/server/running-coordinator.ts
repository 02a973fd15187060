// Finds the coordinator that uses a data directory. Rejects a start while another coordinator uses the data directory. The lock of the database has the same effect; here the
// message has the pid and the URL, and does not wait.
import { readFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import type { DataDirectory } from '../base/data-directory.ts'
import { StartError } from '../base/start-error.ts'
import { isAlive } from '../providers/parts/proc.ts'
import { formatBoxCommand } from './box-command.ts'

/** null: no coordinator uses the data directory. */
export async function findRunningCoordinator({
  coordinatorFile,
}: Pick<DataDirectory, 'coordinatorFile'>): Promise<CoordinatorRecord | null> {
  const running = await readRecord(coordinatorFile)
  return running === null || !isAlive(running) ? null : running
}

/**
 * Also logs that the last coordinator has ended without stopping, and so may have written no last line: its record is left.
 * @throws StartError
 */
export async function assertNotRunning(
  { dir, coordinatorFile }: Pick<DataDirectory, 'dir' | 'coordinatorFile'>,
  log: Pick<Logger, 'warn'>,
): Promise<void> {
  const record = await readRecord(coordinatorFile)
  // A process may start several coordinators, as the tests do.
  if (record === null || record.pid === process.pid) return
  if (!isAlive(record)) return log.warn({ endedPid: record.pid, version: record.version }, ENDED)
  throw new StartError(
    `Another coordinator uses this data directory: ${record.url} (pid ${record.pid}). Use it, stop it with \`${formatBoxCommand(dir)} down\`, or set another directory in BOXWOOD_DATA.`,
  )
}

const ENDED =
  'the previous coordinator ended without stopping: if the log has no line with its reason, it was killed with SIGKILL, for example by the out-of-memory killer of the kernel, or it crashed, or the machine was switched off'

/** null: no coordinator has written the file, or it is not readable. */
async function readRecord(file: string): Promise<CoordinatorRecord | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as CoordinatorRecord
  } catch {
    return null
  }
}
