// Stops everything that runs on a data directory, after a test that has started processes outside its control.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from '../../coordinator/providers/parts/proc.ts'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { databaseEnv } from './database-env.ts'
import { PROJECT_DIR } from './project.ts'
import { waitUntil } from './wait-until.ts'

/** The running coordinator of the data directory. */
export function readRunningCoordinator(dataDir: string): CoordinatorRecord | null {
  try {
    const record = JSON.parse(readFileSync(join(dataDir, 'coordinator.json'), 'utf8')) as CoordinatorRecord
    return isAlive(record) ? record : null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/**
 * Kills the coordinator, and stops the boxes as the owner of the directory.
 * @param projectDir a copy of the project that this owner can read
 */
export async function stopDataDirectory(dataDir: string, projectDir = PROJECT_DIR): Promise<void> {
  const coordinator = readRunningCoordinator(dataDir)
  if (coordinator !== null) {
    process.kill(coordinator.pid, 'SIGKILL')
    await waitUntil('the coordinator has exited', () => !isAlive(coordinator))
  }
  if (!existsSync(join(dataDir, 'boxwood.db'))) return
  const { uid, gid } = statSync(dataDir)
  const { status, stderr } = spawnSync(
    join(projectDir, 'node_modules/node/bin/node'),
    [join(projectDir, 'coordinator/server/suspend-boxes.ts')],
    {
      uid,
      gid,
      env: { ...process.env, ...databaseEnv(dataDir), BOXWOOD_DATA: dataDir, BOXWOOD_LOG: 'error' },
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(`the boxes of ${dataDir} were not stopped: ${stderr}`)
}
