// Restores a backup into an empty data directory. The coordinator uses the directory only when the restore is complete.
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createDataDirectory, POSTGRES_FILE, RESTORE_DIR } from '../../base/data-directory.ts'
import { createLogger } from '../../base/log/logger.ts'
import { StartError } from '../../base/start-error.ts'
import { syncDirectory } from '../../base/sync-directory.ts'
import { checkIntegrity, copyToPostgres, listMigrations, openCopy } from '../../db/copy-database.ts'
import { listExecutedMigrations } from '../../db/executed-migrations.ts'
import { openDatabase } from '../../db/open.ts'
import { writePostgresFile } from '../../db/open-configured.ts'
import type { Config } from '../config.ts'
import { type BackupDescription, DATABASE_ENTRY, isDataFile } from './format.ts'
import { type BackupFile, openBackup, readEntries, type VerifiedBackup, verifyBackup } from './read.ts'

/** Throws StartError; the data directory then remains as it was. */
export async function restoreBackup(
  config: Config,
  file: string,
  signal: AbortSignal,
): Promise<BackupDescription> {
  const backup = await openBackup(file)
  try {
    return await restoreOpenBackup(config, backup, signal)
  } finally {
    await backup.handle.close()
  }
}

/** As restoreBackup(). The user of the process must be the one of the data directory: see becomeOwner(). */
export async function restoreOpenBackup(
  config: Config,
  backupFile: BackupFile,
  signal: AbortSignal,
): Promise<BackupDescription> {
  const { dataDir } = config
  const { path: file } = backupFile
  await assertEmpty(dataDir)
  const backup = await verifyBackup(backupFile, signal)
  assertSupported(file, backup.description.version, backup.description.migrations)
  const existed = await createDataDirectory(dataDir).catch((error: Error) => {
    throw new StartError(`The data directory ${dataDir} cannot be created: ${error.message}.`)
  })
  const staging = join(dataDir, RESTORE_DIR)
  try {
    // An interrupted restore may have left files.
    await removeContent(dataDir)
    await mkdir(staging, { mode: 0o700 })
    await extract(backupFile, staging, backup, signal)
    await checkDatabase(file, staging, backup.description)
    const moveFiles = async () => {
      signal.throwIfAborted()
      for (const name of await readdir(staging)) await rename(join(staging, name), join(dataDir, name))
      await syncDirectory(dataDir)
    }
    if (config.databaseUrl === null) await moveFiles()
    else await restoreToPostgres(config, config.databaseUrl, staging, moveFiles)
    // A coordinator can use the data directory as soon as the staging directory is removed.
    await rm(staging, { recursive: true })
    await syncDirectory(dataDir)
    return backup.description
  } catch (error) {
    await removeContent(dataDir)
    if (!existed) await rm(dataDir, { recursive: true })
    throw explain(dataDir, error)
  }
}

async function assertEmpty(dataDir: string): Promise<void> {
  const names = await readdir(dataDir).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return []
    throw new StartError(`The data directory ${dataDir} cannot be used: ${error.message}.`)
  })
  // An interrupted restore has created everything in the directory.
  if (names.length > 0 && !names.includes(RESTORE_DIR))
    throw new StartError(
      `The data directory ${dataDir} is not empty. Set BOXWOOD_DATA to an empty or a new directory. Nothing was changed.`,
    )
}

function assertSupported(file: string, version: string, migrations: readonly string[]): void {
  const known = listMigrations()
  if (migrations.every((name) => known.includes(name))) return
  throw new StartError(
    `The backup ${file} was written by a newer version of Boxwood (${version}). Install that version or a newer one. Nothing was written.`,
  )
}

async function removeContent(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) await rm(join(dataDir, name), { recursive: true, force: true })
}

/** Compares the checksums again: the file may have changed since its verification. */
async function extract(
  backupFile: BackupFile,
  staging: string,
  { checksums }: VerifiedBackup,
  signal: AbortSignal,
): Promise<void> {
  await readEntries(backupFile, signal, async (name, entry) => {
    if (!isDataFile(name)) {
      for await (const _ of entry);
      return
    }
    const path = join(staging, name)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const output = await open(path, 'wx', 0o600)
    try {
      if ((await writeEntry(output, entry)) !== checksums.get(name))
        throw new StartError(`${backupFile.path} was changed while it was read. Nothing was restored.`)
      await output.sync()
    } finally {
      await output.close()
    }
  })
}

/** Returns the SHA-256 of the content. */
async function writeEntry(output: FileHandle, entry: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const block of entry) {
    hash.update(block)
    await output.writeFile(block)
  }
  return hash.digest('hex')
}

async function checkDatabase(file: string, staging: string, { version }: BackupDescription): Promise<void> {
  const copy = await openCopy(join(staging, DATABASE_ENTRY)).catch((error: unknown) => {
    throw new StartError(`The database in ${file} is damaged. Use another backup.`, { cause: error })
  })
  try {
    const problem = await checkIntegrity(copy)
    if (problem !== null)
      throw new StartError(`The database in ${file} is damaged: ${problem}. Use another backup.`)
    assertSupported(file, version, await listExecutedMigrations(copy))
  } finally {
    await copy.destroy()
  }
}

/** The file of the database is replaced by an empty one, and by one that keeps a start from using no Postgres database. */
async function restoreToPostgres(
  config: Config,
  url: string,
  staging: string,
  moveFiles: () => Promise<void>,
): Promise<void> {
  const databaseFile = join(staging, DATABASE_ENTRY)
  const log = await createLogger(config, new Map())
  const target = await openDatabase({
    kind: 'postgres',
    url,
    log,
    onOpen: (description) => writePostgresFile(join(staging, POSTGRES_FILE), description),
    onTaken: () => undefined,
    migrateTo: null,
  })
  try {
    const copy = await openCopy(databaseFile)
    try {
      await copyToPostgres(copy, target, async () => {
        await copy.destroy()
        await rm(databaseFile)
        await moveFiles()
      })
    } finally {
      await copy.destroy()
    }
  } finally {
    await target.destroy()
  }
}

/** Errors of the operating system, such as a full disk, and of Postgres. */
function explain(dataDir: string, error: unknown): unknown {
  if (error instanceof StartError || !(error instanceof Error) || !('code' in error || 'errcode' in error))
    return error
  return new StartError(
    `The backup cannot be restored to ${dataDir}: ${error.message}. Nothing was restored.`,
    {
      cause: error,
    },
  )
}
