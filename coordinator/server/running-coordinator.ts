// Finds the coordinator that uses a data directory. Rejects a start while another coordinator uses the data directory. The lock of the database has the same effect; here the
// message has the pid and the URL, and does not wait.
import { readFile } from 'node:fs/promises'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import type { DataDirectory } from '../base/data-directory.ts'
import { StartError } from '../base/start-error.ts'
import { isAlive } from '../providers/local/proc.ts'
import { formatBoxCommand } from './box-command.ts'

/** null: no coordinator uses the data directory. */
export async function findRunningCoordinator({
  coordinatorFile,
}: Pick<DataDirectory, 'coordinatorFile'>): Promise<CoordinatorRecord | null> {
  const running = await readRecord(coordinatorFile)
  return running === null || !isAlive(running) ? null : running
}

/** @throws StartError */
export async function assertNotRunning(dataDirectory: DataDirectory): Promise<void> {
  const { dir } = dataDirectory
  const running = await findRunningCoordinator(dataDirectory)
  // A process may start several coordinators, as the tests do.
  if (running === null || running.pid === process.pid) return
  throw new StartError(
    `Another coordinator uses this data directory: ${running.url} (pid ${running.pid}). Use it, stop it with \`${formatBoxCommand(dir)} down\`, or set another directory in BOXWOOD_DATA.`,
  )
}

/** null: no coordinator has written the file, or it is not readable. */
async function readRecord(file: string): Promise<CoordinatorRecord | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as CoordinatorRecord
  } catch {
    return null
  }
}
