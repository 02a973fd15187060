// Prepares a backup: a consistent copy of the database, and the list of the files that belong to it. They do not change
// until the release.

import { randomBytes } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { appendFile, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pLimit from 'p-limit'
import { z } from 'zod'
import type { Clock } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import { REGIONS, type Region } from '../../../shared/tiers.ts'
import { VERSION } from '../../../shared/version.ts'
import { MASTER_KEYS_FILE } from '../../base/sealing/key-file.ts'
import { StartError } from '../../base/start-error.ts'
import { checkIntegrity, copyDatabase, openCopy } from '../../db/copy-database.ts'
import { listExecutedMigrations } from '../../db/executed-migrations.ts'
import type { Db } from '../../db/open.ts'
import { getEngineArchivesDir } from '../../providers/local/region-directories.ts'
import { listArchiveFiles } from '../../providers/parts/archives/list-archive-files.ts'
import type { ArchiveHold, Provider } from '../../providers/provider.ts'
import { isElsewhere } from '../../replicas/hosts.ts'
import { type BackupDescription, DATABASE_ENTRY, FORMAT_VERSION, KEY_FILES } from './format.ts'
import type { BackupFile } from './pack.ts'
import type { OnProgress } from './progress.ts'
import {
  type BackedUpBox,
  findSleepArchive,
  listArchives,
  listBoxesWithFiles,
  restartCopies,
  restartCreations,
  setSleeping,
} from './store.ts'

/** The part of a provider that backups use. */
export type BackupProvider = Pick<Provider, 'name' | 'capture' | 'removeArchive' | 'holdArchives'>

export type BackupSource = {
  db: Db
  /** Of the data directory. A backup has no files of other hosts. */
  host: string
  dataDir: string
  /** The master keys are in a file that the operator provides: a backup has no master keys. */
  hasMountedKeys: boolean
  clock: Clock
  /** The providers of all regions. */
  providers: { readonly all: readonly BackupProvider[]; inRegion(region: Region): BackupProvider }
  log: { warn(fields: object, message: string): void }
}

export type BackupOptions = { includeBoxes: boolean; onProgress?: OnProgress | undefined }

export type PreparedBackup = {
  description: BackupDescription
  /** A JSON line {name, path} per file. */
  filesFile: string
  /** Removes the copies. */
  release(): Promise<void>
}

/** The name of a directory in the data directory. It has a directory per backup in progress. */
const WORK_DIR = 'backup-tmp'
/** Adds the column host. */
const HOSTS_MIGRATION = '0033-hosts'
const CAPTURES_FILE = 'captures'
const MAX_CONCURRENT_CAPTURES = 2
/** A box may be started or stopped while its files are read. */
const MAX_CAPTURE_ATTEMPTS = 3

/**
 * The archives that a provider stores elsewhere than on this machine are not in a backup, nor are the files of its boxes.
 * @param includeBoxes the files of boxes. Running boxes are paused while their files are read.
 */
export async function prepareBackup(
  source: BackupSource,
  { includeBoxes, onProgress, signal }: BackupOptions & { signal: AbortSignal },
): Promise<PreparedBackup> {
  onProgress?.({ phase: 'database', done: 0, total: 0 })
  const { db, dataDir, providers } = source
  const dir = join(dataDir, WORK_DIR, randomBytes(6).toString('hex'))
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const holds = await holdArchives(providers.all)
  const release = async () => {
    await removeWork(dir, source)
    for (const hold of holds) hold.release()
  }
  try {
    const databaseFile = join(dir, DATABASE_ENTRY)
    await copyDatabase(db, databaseFile)
    const copy = await openCopy(databaseFile)
    try {
      return { ...(await complete(source, { dir, copy, includeBoxes, onProgress, signal })), release }
    } finally {
      await copy.destroy()
    }
  } catch (error) {
    await release()
    throw error
  }
}

async function holdArchives(providers: readonly BackupProvider[]): Promise<ArchiveHold[]> {
  const holds = await Promise.all(providers.map((provider) => provider.holdArchives?.()))
  return holds.filter((hold) => hold !== undefined)
}

type Work = BackupOptions & { dir: string; copy: Db; signal: AbortSignal }

async function complete(source: BackupSource, { dir, copy, includeBoxes, onProgress, signal }: Work) {
  const problem = await checkIntegrity(copy)
  if (problem !== null)
    throw new StartError(`The database is damaged: ${problem}. Restore it from an earlier backup.`)
  const migrations = await listExecutedMigrations(copy)
  const hasHosts = migrations.includes(HOSTS_MIGRATION)
  const boxes = await listBoxesWithFiles(copy, hasHosts)
  const included = includeBoxes ? boxes.filter((box) => storesHere(source, box)) : []
  await captureBoxes(source, { dir, copy, boxes: included, onProgress, signal })
  await restartCreations(copy)
  await restartCopies(copy, source.clock.now())
  onProgress?.({ phase: 'archives', done: 0, total: 0 })
  const filesFile = join(dir, 'files')
  const archives = { omitted: 0 }
  const lines = formatLines(listFiles(source, { dir, copy, hasHosts, signal, archives }))
  await pipeline(Readable.from(lines), createWriteStream(filesFile, { mode: 0o600 }))
  const description: BackupDescription = {
    format: FORMAT_VERSION,
    version: VERSION,
    createdAt: new Date(source.clock.now()).toISOString(),
    migrations,
    boxes: { included: included.length, omitted: boxes.length - included.length },
    archives,
  }
  return { description, filesFile }
}

/** Archives the files of the boxes, as for deep sleep. In the copy of the database, the boxes are in deep sleep. */
async function captureBoxes(
  source: BackupSource,
  { dir, copy, boxes, onProgress, signal }: Omit<Work, 'includeBoxes'> & { boxes: readonly BackedUpBox[] },
): Promise<void> {
  let done = 0
  const report = () => onProgress?.({ phase: 'boxes', done, total: boxes.length })
  if (boxes.length > 0) report()
  const limit = pLimit(MAX_CONCURRENT_CAPTURES)
  const capturesFile = join(dir, CAPTURES_FILE)
  await Promise.all(
    boxes.map((box) =>
      limit(async () => {
        signal.throwIfAborted()
        const archiveId = newId('archive')
        const { region, provider, workspaceId } = box
        // The next start removes the archive when this process is killed.
        await appendFile(capturesFile, `${JSON.stringify({ region, provider, workspaceId, archiveId })}\n`, {
          mode: 0o600,
        })
        await setSleeping(copy, box.id, await captureBox(source, box, archiveId, signal))
        done++
        report()
      }),
    ),
  )
}

/** Whether the provider of the box stores archives on this machine. */
function storesHere({ providers, host }: BackupSource, box: BackedUpBox): boolean {
  if (isElsewhere(box, host)) return false
  const provider = providers.inRegion(box.region)
  return provider.name === box.provider && provider.holdArchives !== undefined
}

async function captureBox(source: BackupSource, box: BackedUpBox, archiveId: string, signal: AbortSignal) {
  const { id, region, workspaceId, hostname } = box
  for (let attempt = 1; ; attempt++) {
    try {
      const provider = source.providers.inRegion(region)
      const { contentBytes } = await provider.capture(id, { workspaceId, archiveId }, 'all', signal)
      return { archiveId, archiveBytes: contentBytes }
    } catch (error) {
      signal.throwIfAborted()
      // The box was put to deep sleep after the copy of the database.
      const sleeping = await findSleepArchive(source.db, id)
      if (sleeping?.archiveId != null)
        return { archiveId: sleeping.archiveId, archiveBytes: sleeping.archiveBytes ?? 0 }
      if (attempt < MAX_CAPTURE_ATTEMPTS) continue
      throw new StartError(
        `The files of box ${hostname} cannot be read: ${(error as Error).message} \`--without-boxes\` makes a backup without the files of boxes.`,
        { cause: error },
      )
    }
  }
}

async function* listFiles(
  { host, dataDir, hasMountedKeys, providers, log }: BackupSource,
  {
    dir,
    copy,
    hasHosts,
    signal,
    archives,
  }: Omit<Work, 'includeBoxes' | 'onProgress'> & { hasHosts: boolean; archives: { omitted: number } },
): AsyncGenerator<BackupFile> {
  yield { name: DATABASE_ENTRY, path: join(dir, DATABASE_ENTRY) }
  for (const name of KEY_FILES) {
    if (name === MASTER_KEYS_FILE && hasMountedKeys) continue
    if (existsSync(join(dataDir, name))) yield { name, path: join(dataDir, name) }
  }
  const listed = new Set<string>()
  const stores = new Map<BackupProvider, string | null>()
  for (const { region, provider: name, host: archiveHost, ...key } of await listArchives(copy, hasHosts)) {
    signal.throwIfAborted()
    if (isElsewhere({ host: archiveHost }, host)) {
      archives.omitted++
      continue
    }
    const provider = providers.inRegion(region)
    // Without a coordinator, the providers of engines are not open.
    const store = provider.name === name ? await findStore(provider, stores) : findEngineStore(dataDir, name)
    if (store === null) {
      archives.omitted++
      continue
    }
    try {
      for (const file of listArchiveFiles(store, key, listed))
        yield { name: join(relative(dataDir, store), file.name), path: file.path }
    } catch (err) {
      archives.omitted++
      log.warn({ err, archiveId: key.archiveId }, 'an archive is damaged; the backup does not contain it')
    }
  }
}

/** The directory of the archives of a provider; null: they are not on this machine. */
async function findStore(
  provider: BackupProvider,
  stores: Map<BackupProvider, string | null>,
): Promise<string | null> {
  const known = stores.get(provider)
  if (known !== undefined) return known
  const hold = await provider.holdArchives?.()
  hold?.release()
  const store = hold?.dir ?? null
  stores.set(provider, store)
  return store
}

function findEngineStore(dataDir: string, provider: string): string | null {
  const store = getEngineArchivesDir(dataDir, provider)
  return existsSync(store) ? store : null
}

async function* formatLines(files: AsyncIterable<BackupFile>): AsyncGenerator<string> {
  for await (const file of files) yield `${JSON.stringify(file)}\n`
}

const capturedArchive = z.object({
  region: z.enum(REGIONS),
  // Earlier versions have captured only boxes of this machine.
  provider: z.string().default('local'),
  workspaceId: z.string(),
  archiveId: z.string(),
})

/** Removes the archives and the directory of a backup. */
async function removeWork(
  dir: string,
  { providers, log }: Pick<BackupSource, 'providers' | 'log'>,
): Promise<void> {
  try {
    const text = await readFile(join(dir, CAPTURES_FILE), 'utf8').catch(() => '')
    for (const line of text.split('\n').slice(0, -1)) {
      const { region, provider: name, ...key } = capturedArchive.parse(JSON.parse(line))
      const provider = providers.inRegion(region)
      // Without a coordinator, the providers of engines are not open. The next coordinator removes their archives.
      if (provider.name !== name) return
      await provider.removeArchive(key)
    }
    await rm(dir, { recursive: true, force: true })
  } catch (err) {
    log.warn({ err, dir }, 'failed to remove the files of a backup; the next start tries again')
  }
}

/** Removes what backups of a killed coordinator have left. */
export async function removeIncompleteBackups(
  source: Pick<BackupSource, 'dataDir' | 'providers' | 'log'>,
): Promise<void> {
  const workDir = join(source.dataDir, WORK_DIR)
  const names = await readdir(workDir).catch(() => [])
  for (const name of names) await removeWork(join(workDir, name), source)
}
