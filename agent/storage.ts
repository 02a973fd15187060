// The state directory of the agent: its lock, and the report spool.
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { SPOOL_DIRECTORY } from '../shared/report-spool.ts'
import { lockDirectory } from './lock.ts'
import { openSpool, type Spool } from './reports/spool.ts'
import { openState } from './state.ts'

export type Storage = {
  /** The real path of the state directory. */
  realDir: string
  spool: Spool
  close(): Promise<void>
}

/** @throws Error when another agent uses the state directory, or when the directory is not usable */
export async function openStorage(stateDir: string, log: Logger): Promise<Storage> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  const realDir = await realpath(stateDir)
  await using cleanup = new AsyncDisposableStack()
  const lock = cleanup.adopt(await lockDirectory(stateDir), ({ release }) => release())
  const stateFile = await openState(stateDir, log)
  const spool = await openSpool({ dir: join(stateDir, SPOOL_DIRECTORY), stateFile, log })
  cleanup.move()
  return {
    realDir,
    spool,
    async close() {
      await spool.close()
      await lock.release()
    },
  }
}
