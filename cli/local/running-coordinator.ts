// Finds the process of a data directory's coordinator on this machine, and signals it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { hasExited, parseProcStat } from '../../shared/proc-stat.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

const POLL_INTERVAL_MS = 50

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
function isAlive({ pid, startTicks, bootId }: CoordinatorRecord): boolean {
  if (readTextFile('/proc/sys/kernel/random/boot_id')?.trim() !== bootId) return false
  const line = Number.isSafeInteger(pid) && pid > 0 ? readTextFile(`/proc/${pid}/stat`) : null
  const stat = line === null ? null : parseProcStat(line)
  return stat !== null && stat.startTicks === startTicks && !hasExited(stat)
}

/** No-op when the process has exited. @throws CliError without the permission */
export function sendSignal(coordinator: CoordinatorRecord, signal: NodeJS.Signals): void {
  if (!isAlive(coordinator)) return
  try {
    process.kill(coordinator.pid, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return
    if (code !== 'EPERM') throw error
    throw new CliError(
      EXIT.failed,
      `Cannot stop the coordinator (pid ${coordinator.pid}): permission denied. Run box as the user who started it.`,
    )
  }
}

/** Polls, because only the parent process is notified of an exit. Returns false after `timeoutMs`. */
export async function waitUntilExited(
  coordinator: CoordinatorRecord,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; ) {
    if (!isAlive(coordinator)) return true
    await sleep(POLL_INTERVAL_MS, undefined, { signal })
  }
  return false
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
