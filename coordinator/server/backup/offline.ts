// Prepares a backup without a coordinator: locks the data directory meanwhile. The boxes must be stopped.
import { existsSync } from 'node:fs'
import { systemClock } from '../../../shared/clock.ts'
import { openDataDirectory } from '../../base/data-directory.ts'
import { createLogger } from '../../base/log/logger.ts'
import { openConfiguredDatabase } from '../../db/open-configured.ts'
import { openArchivers } from '../../providers/open-providers.ts'
import type { Config } from '../config.ts'
import { type BackupOptions, type PreparedBackup, prepareBackup, removeIncompleteBackups } from './prepare.ts'

export async function prepareOfflineBackup(
  config: Config,
  options: BackupOptions,
  signal: AbortSignal,
): Promise<PreparedBackup> {
  const { dataDir } = config
  const log = await createLogger(config, new Map())
  const dataDirectory = await openDataDirectory(dataDir)
  const db = await openConfiguredDatabase(config, dataDirectory, {
    log,
    onTaken: () => undefined,
    migrateTo: null,
  })
  const providers = await openArchivers({ dataDir, log })
  const close = async () => {
    await providers.close()
    await db.destroy()
  }
  try {
    const hasMountedKeys = config.masterKeysFile !== null
    const source = {
      db,
      host: dataDirectory.host,
      dataDir,
      hasMountedKeys,
      providers,
      log,
      clock: systemClock,
    }
    await removeIncompleteBackups(source)
    const prepared = await prepareBackup(source, { ...options, signal })
    return {
      ...prepared,
      async release() {
        await prepared.release()
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Whether a coordinator has used the directory. */
export const hasData = (dataDir: string): boolean => existsSync(`${dataDir}/boxwood.db`)
