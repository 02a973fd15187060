// Writes a backup to a file. The file has its name only when it is complete.
import { randomBytes } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { link, open, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { openDataDirectory } from '../../base/data-directory.ts'
import { StartError } from '../../base/start-error.ts'
import { syncDirectory } from '../../base/sync-directory.ts'
import type { Config } from '../config.ts'
import { findRunningCoordinator } from '../running-coordinator.ts'
import { requestBackup } from './backup-socket.ts'
import type { BackupDescription } from './format.ts'
import { hasData, prepareOfflineBackup } from './offline.ts'
import { type BackupFile, getPackedBytes, packBackup } from './pack.ts'
import type { BackupOptions, PreparedBackup } from './prepare.ts'

export type WrittenBackup = { file: string; bytes: number; description: BackupDescription }

/** Writes a backup of the data directory, which a coordinator may be using. Throws StartError. */
export async function writeBackup(
  config: Config,
  path: string,
  { signal, ...options }: BackupOptions & { signal: AbortSignal },
): Promise<WrittenBackup> {
  const { dataDir } = config
  const file = resolve(path)
  if (!hasData(dataDir))
    throw new StartError(`${dataDir} is not the data directory of a coordinator. Set BOXWOOD_DATA to it.`)
  if (existsSync(file)) throw alreadyExists(file)
  const isRunning = (await findRunningCoordinator(await openDataDirectory(dataDir))) !== null
  const partialFile = join(dirname(file), `.${basename(file)}.${randomBytes(4).toString('hex')}.partial`)
  // The file is created before the copies are made, because its directory may not be writable.
  const output = await open(partialFile, 'wx', 0o600).catch(explainWriteError(file))
  let prepared: PreparedBackup | null = null
  try {
    prepared = isRunning
      ? await requestBackup(dataDir, options, signal)
      : await prepareOfflineBackup(config, options, signal)
    const { description, filesFile } = prepared
    const total = await sumBytes(filesFile)
    let bytes = 0
    for await (const block of packBackup(description, readFileList(filesFile))) {
      signal.throwIfAborted()
      await output.writeFile(block).catch(explainWriteError(file))
      bytes += block.length
      options.onProgress?.({ phase: 'file', done: bytes, total })
    }
    await output.sync().catch(explainWriteError(file))
    const { release } = prepared
    prepared = null
    // Fails when the coordinator has stopped, so that the files may have changed.
    await release()
    // Unlike rename(), link() does not replace a file.
    await link(partialFile, file).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? alreadyExists(file) : error
    })
    await syncDirectory(dirname(file))
    return { file, bytes, description }
  } finally {
    await output.close()
    await rm(partialFile, { force: true })
    await prepared?.release().catch(() => undefined)
  }
}

const backupFile = z.object({ name: z.string(), path: z.string() })

async function* readFileList(file: string): AsyncGenerator<BackupFile> {
  for await (const line of createInterface({ input: createReadStream(file) }))
    yield backupFile.parse(JSON.parse(line))
}

async function sumBytes(filesFile: string): Promise<number> {
  let bytes = 0
  for await (const { path } of readFileList(filesFile)) bytes += getPackedBytes((await stat(path)).size)
  return bytes
}

const alreadyExists = (file: string): StartError =>
  new StartError(`${file} exists. Remove it, or choose another name.`)

const explainWriteError =
  (file: string) =>
  (error: NodeJS.ErrnoException): never => {
    throw new StartError(`Cannot write ${file}: ${error.message}. The backup was not made.`, { cause: error })
  }
