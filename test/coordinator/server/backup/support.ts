// Makes and restores backups of coordinators in this process.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { restoreBackup } from '../../../../coordinator/server/backup/restore.ts'
import { writeBackup } from '../../../../coordinator/server/backup/write-backup.ts'
import { type Config, loadConfig } from '../../../../coordinator/server/config.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const never = new AbortController()
/** A signal that is not aborted. */
export const NEVER: typeof never.signal = never.signal

/** Without the Postgres database of the test run, unless `env` has one. */
export const configOf = (dataDir: string, env: Record<string, string> = {}): Config =>
  loadConfig({ BOXWOOD_DATA: dataDir, BOXWOOD_LOG: 'silent', ...env })

export type BackupTestOptions = { env?: Record<string, string>; includeBoxes?: boolean; signal?: AbortSignal }

/** Returns the file of the backup. */
export async function backUp(
  t: Test,
  dataDir: string,
  { env = {}, includeBoxes = true, signal = NEVER }: BackupTestOptions = {},
): Promise<string> {
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  await writeBackup(configOf(dataDir, env), file, { includeBoxes, signal })
  return file
}

/** Restores into a new directory, and returns the directory. */
export async function restore(t: Test, file: string, env: Record<string, string> = {}): Promise<string> {
  const dataDir = join(createTempDir(t, 'restored'), 'elsewhere')
  await restoreBackup(configOf(dataDir, env), file, NEVER)
  return dataDir
}

export const listNames = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir).sort() : [])
