// Reads coordinator.json, and finds out whether the coordinator that wrote the file still runs.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { hasExited, parseProcStat } from '../../shared/proc-stat.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** Returns null when no coordinator runs, also when another process has reused the pid in coordinator.json. */
export function readRunningCoordinator(dataDir: string): CoordinatorRecord | null {
  const path = join(dataDir, 'coordinator.json')
  const text = readTextFile(path)
  if (text === null) return null
  try {
    const record = JSON.parse(text) as CoordinatorRecord
    return isAlive(record) ? record : null
  } catch {
    throw new CliError(
      EXIT.failed,
      `${path} is not valid JSON. Stop the coordinator with kill, and delete the file.`,
    )
  }
}

/** False for another process with the same pid. */
export function isAlive({ pid, startTicks, bootId }: CoordinatorRecord): boolean {
  if (readTextFile('/proc/sys/kernel/random/boot_id')?.trim() !== bootId) return false
  const line = Number.isSafeInteger(pid) && pid > 0 ? readTextFile(`/proc/${pid}/stat`) : null
  const stat = line === null ? null : parseProcStat(line)
  return stat !== null && stat.startTicks === startTicks && !hasExited(stat)
}

/**
 * Call it before a credential is sent to the URL of a data directory. When the coordinator does not run, any program of this
 * machine, also in a box, may listen on its port.
 * @throws an error like that of a connection to a closed port
 */
export function assertRunning(dataDir: string, url: string): void {
  if (readRunningCoordinator(dataDir)?.url === url) return
  throw Object.assign(new Error('The coordinator does not run.'), { code: 'ECONNREFUSED' })
}

function readTextFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // ESRCH: the process has exited while its file was open.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH') return null
    if (code !== 'EACCES') throw error
    throw new CliError(
      EXIT.notAuthenticated,
      `Cannot read ${path}: permission denied. Run box as the user who started the coordinator.`,
    )
  }
}
