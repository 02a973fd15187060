// The archive store of the local provider: the files of boxes as deduplicated, compressed and verified chunks.
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { TIERS } from '../../../../shared/tiers.ts'
import { ArchiveError, type ArchiveHold, type ArchiveInfo, type ArchiveKey } from '../../provider.ts'
import {
  type ArchiveLocation,
  hasGarbage,
  ID_PATTERN,
  listWorkspaceIds,
  locateArchive,
  workspaceDirOf,
} from './archive-location.ts'
import { type Manifest, readManifest } from './manifest.ts'
import type { Pause } from './measured-pause.ts'
import { parseUsage } from './read-box.ts'
import { readTarOutput } from './run-tar.ts'
import { startTask } from './run-task.ts'
import { archivePath, DamagedArchiveError, storeDirs } from './store-files.ts'
import type { StoreLimits } from './store-limits.ts'
import { runCapture, runTreeCopy, runWrite, type StreamInfo } from './stream-tasks.ts'
import { type BoxFiles, buildTarCommands, createToolsProbe, type TarTools, type ToolsProbe } from './tar.ts'
import { TaskQueue } from './task-queue.ts'
import { createWorkspaces, type Workspaces } from './workspaces.ts'

export type ArchivesOptions = {
  /** Contains a directory per workspace. */
  dir: string
  log: { warn(fields: object, message: string): void }
  /** The maximum length of the tar stream of an archive. Default: the disk of the largest tier. */
  maxBytes?: number
  /** The free space that captures leave on the disk. Default: 4 GB, which is more than the disk monitor requires. */
  reserveBytes?: number
  /** Default: the tools that work on this machine. Only tests set it. */
  tools?: TarTools
}

export type CaptureOptions = {
  /** Absent: the machine is not running. */
  pause?: Pause | undefined
  /** Throws when the files may have changed while they were read. */
  verify?: (() => void) | undefined
  /** How long the processes of the machine were paused before this call. */
  pausedMs?: number | null
  signal?: AbortSignal | undefined
}

const MAX_BYTES = TIERS.ultra.diskGb * 1000 ** 3
const RESERVE_BYTES = 4 * 1000 ** 3

export class Archives {
  readonly #dir: string
  readonly #log: ArchivesOptions['log']
  readonly #limits: StoreLimits
  readonly #probeTools: ToolsProbe
  readonly #tasks = new TaskQueue()
  readonly #workspaces: Workspaces

  constructor({ dir, log, maxBytes, reserveBytes, tools }: ArchivesOptions) {
    this.#dir = dir
    this.#log = log
    this.#limits = { maxBytes: maxBytes ?? MAX_BYTES, reserveBytes: reserveBytes ?? RESERVE_BYTES }
    this.#probeTools = createToolsProbe({ onSlow: (message) => log.warn({}, message), known: tools })
    this.#workspaces = createWorkspaces({
      collect: (workspaceId, scope) => this.#collect(workspaceId, scope),
      hasGarbage: (workspaceId) => hasGarbage(workspaceDirOf(dir, workspaceId)),
      onError: (err) =>
        log.warn({ err }, 'failed to remove unused data of archives; the next use tries again'),
    })
    void this.#tasks.track(this.#collectAll())
  }

  async capture(files: BoxFiles, key: ArchiveKey, options: CaptureOptions = {}): Promise<ArchiveInfo> {
    const { pause, verify, pausedMs } = options
    const signal = this.#tasks.withClosing(options.signal)
    // The user of the box enters its directories by their paths.
    if (files.uid !== null) await chmod(files.dir, 0o711)
    const { pack, measure, findLongPath } = buildTarCommands(await this.#probeTools(files.uid), files)
    const commands = { pack, measure, findLongPath }
    const work = this.#add(key, signal, ({ workspaceDir, archiveId }) => {
      const isPaused = pause !== undefined
      const limits = this.#limits
      const task = { kind: 'capture', workspaceDir, archiveId, limits, commands, isPaused } as const
      return runCapture(task, { pause, verify, pausedMs }, signal)
    })
    return await this.#tasks.track(work)
  }

  /**
   * Clones the files of a box into a directory of its user on the same file system, without copying their content. Throws where
   * that is not possible; then the directory has a part of them.
   * @param target a path that starts at the directory of the box
   */
  async clone(files: BoxFiles, target: string, callerSignal?: AbortSignal): Promise<void> {
    const signal = this.#tasks.withClosing(callerSignal)
    if (files.uid !== null) await chmod(files.dir, 0o711)
    const tools = await this.#probeTools(files.uid)
    if (!tools.hasUserNamespace) throw new Error('User namespaces are not available.')
    await this.#tasks.track(readTarOutput(buildTarCommands(tools, files).clone(target), signal))
  }

  /** Returns the disk space that the files occupy, in bytes. */
  async measure(files: BoxFiles, callerSignal?: AbortSignal): Promise<number> {
    const signal = this.#tasks.withClosing(callerSignal)
    const { measure } = buildTarCommands(await this.#probeTools(files.uid), files)
    return parseUsage(await this.#tasks.track(readTarOutput(measure, signal)))
  }

  /**
   * Copies the files of a box into the existing directories of `target` without the store. Then they are on disk. After a
   * failure, the target has some of them.
   */
  async copyTree(files: BoxFiles, target: BoxFiles, options: CaptureOptions = {}): Promise<StreamInfo> {
    const { pause, verify, pausedMs } = options
    const signal = this.#tasks.withClosing(options.signal)
    if (files.uid !== null) await chmod(files.dir, 0o711)
    const tools = await this.#probeTools(files.uid)
    const { pack } = buildTarCommands(tools, files)
    const { unpack, measure } = buildTarCommands(tools, target)
    const task = { kind: 'copy-tree', limits: this.#limits, pack, unpack, measure, ...tools } as const
    return await this.#tasks.track(
      this.#tasks.run(signal, () => runTreeCopy(task, { pause, verify, pausedMs }, signal)),
    )
  }

  /**
   * Stores a tar stream, whose length is its contentBytes.
   * @param content is not read when the archive exists
   * @param getInfo called at the end of the stream. With it, the stream is read as fast as that of a capture.
   */
  async write(
    key: ArchiveKey,
    content: Readable,
    callerSignal?: AbortSignal,
    getInfo?: () => StreamInfo,
  ): Promise<ArchiveInfo> {
    const signal = this.#tasks.withClosing(callerSignal)
    const work = this.#add(key, signal, ({ workspaceDir, archiveId }) => {
      const isPaused = getInfo !== undefined
      const task = { kind: 'write', workspaceDir, archiveId, limits: this.#limits, isPaused } as const
      return runWrite(task, content, signal, getInfo)
    })
    return await this.#tasks.track(work)
  }

  /** Returns the ids of the complete archives. */
  async list(): Promise<string[]> {
    const workspaceIds = await listWorkspaceIds(this.#dir)
    const lists = workspaceIds.map(async (workspaceId) => {
      const { archives } = storeDirs(workspaceDirOf(this.#dir, workspaceId))
      return existsSync(archives) ? await readdir(archives) : []
    })
    return (await Promise.all(lists)).flat()
  }

  /** Whether a workspace has the complete archive. */
  async has(archiveId: string): Promise<boolean> {
    if (!ID_PATTERN.test(archiveId)) return false
    const workspaceIds = await listWorkspaceIds(this.#dir)
    return workspaceIds.some((workspaceId) =>
      existsSync(locateArchive(this.#dir, { workspaceId, archiveId }).path),
    )
  }

  /** null: there is no complete archive. */
  find(key: ArchiveKey): ArchiveInfo | null {
    const { path } = locateArchive(this.#dir, key)
    return existsSync(path) ? toInfo(readManifest(path)) : null
  }

  /** Stores the entries of an archive of the workspace that are in the directories `roots`. */
  async copy(
    source: ArchiveKey,
    key: ArchiveKey,
    roots: readonly string[],
    callerSignal?: AbortSignal,
  ): Promise<ArchiveInfo> {
    const signal = this.#tasks.withClosing(callerSignal)
    const work = this.#add(key, signal, ({ workspaceDir, archiveId }) => {
      const { path } = locateArchive(this.#dir, source)
      const { digest } = readManifest(path)
      const limits = this.#limits
      const from = { archiveId: source.archiveId, digest }
      return startTask({ kind: 'copy', workspaceDir, archiveId, limits, source: from, roots }, {}, signal)
        .finished
    })
    return await this.#tasks.track(work)
  }

  /**
   * Writes the files into the existing directories of `files`.
   * @param selected the directories of the archive of which the files are written. Default: all.
   */
  async restore(
    key: ArchiveKey,
    files: BoxFiles,
    callerSignal?: AbortSignal,
    selected: readonly string[] | null = null,
  ): Promise<void> {
    const { workspaceDir, archiveId, path } = locateArchive(this.#dir, key)
    const tools = await this.#probeTools(files.uid)
    const { unpack: command } = buildTarCommands(tools, files)
    const signal = this.#tasks.withClosing(callerSignal)
    const work = this.#workspaces.use(key.workspaceId, () =>
      this.#tasks.run(signal, async () => {
        const { digest } = readManifest(path)
        const task = {
          kind: 'restore',
          workspaceDir,
          archiveId,
          digest,
          command,
          selected,
          ...tools,
        } as const
        return await startTask(task, {}, signal).finished
      }),
    )
    await this.#tasks.track(work).catch((error: unknown) => {
      throw toArchiveError(key, error)
    })
  }

  /** Returns the tar stream. */
  read(key: ArchiveKey): Readable {
    return Readable.from(this.#readStream(key), { objectMode: false })
  }

  async remove(key: ArchiveKey): Promise<void> {
    const { dirs, path, archiveId } = locateArchive(this.#dir, key)
    if (!existsSync(path)) return
    await mkdir(dirs.removed, { recursive: true, mode: 0o700 })
    await rename(path, join(dirs.removed, archiveId))
    await this.#tasks.track(this.#workspaces.addGarbage(key.workspaceId, 'removed'))
  }

  async removeAll(workspaceId: string): Promise<void> {
    const dirs = storeDirs(workspaceDirOf(this.#dir, workspaceId))
    if (!existsSync(dirs.dir)) return
    await mkdir(dirs.removed, { recursive: true, mode: 0o700 })
    const archiveIds = existsSync(dirs.archives) ? await readdir(dirs.archives) : []
    for (const archiveId of archiveIds)
      await rename(archivePath(dirs, archiveId), join(dirs.removed, archiveId))
    await this.#tasks.track(this.#workspaces.addGarbage(workspaceId, 'all'))
  }

  async hold(): Promise<ArchiveHold> {
    return { dir: this.#dir, release: await this.#workspaces.hold() }
  }

  /** Terminates the running tasks. */
  close(): Promise<void> {
    return this.#tasks.close()
  }

  /** Stores an archive unless it exists. After a failure, the incomplete archive is removed. */
  async #add(
    key: ArchiveKey,
    signal: AbortSignal,
    store: (location: ArchiveLocation) => Promise<Manifest | null>,
  ): Promise<ArchiveInfo> {
    const location = locateArchive(this.#dir, key)
    await mkdir(this.#dir, { recursive: true, mode: 0o700 })
    const manifest = await this.#workspaces
      .use(key.workspaceId, () =>
        this.#tasks.run(signal, async () =>
          existsSync(location.path) ? readManifest(location.path) : await store(location),
        ),
      )
      .catch(async (error: unknown) => {
        await this.#workspaces.addGarbage(key.workspaceId, 'all').catch((err: unknown) => {
          this.#log.warn({ err }, 'failed to remove the data of an incomplete archive')
        })
        throw toArchiveError(key, error)
      })
    if (manifest === null) throw new Error('The archive has no manifest.')
    return toInfo(manifest)
  }

  async #collect(workspaceId: string, scope: 'all' | 'removed'): Promise<void> {
    const workspaceDir = workspaceDirOf(this.#dir, workspaceId)
    await this.#tasks.track(startTask({ kind: 'collect', scope, workspaceDir }).finished)
  }

  /** Removes what a killed coordinator left, in the background. A use of a workspace does not wait for the others. */
  async #collectAll(): Promise<void> {
    for (const workspaceId of await listWorkspaceIds(this.#dir)) {
      if (this.#tasks.isClosed) return
      await this.#workspaces.enter(workspaceId).then(
        (leave) => leave(),
        (err: unknown) => this.#log.warn({ err, workspaceId }, 'failed to remove unused data of archives'),
      )
    }
  }

  async *#readStream(key: ArchiveKey): AsyncGenerator<Buffer> {
    const { workspaceDir, archiveId, path } = locateArchive(this.#dir, key)
    const stopping = new AbortController()
    const leave = await this.#workspaces.enter(key.workspaceId)
    let finished: Promise<unknown> | undefined
    try {
      const { digest } = readManifest(path)
      const work = { kind: 'read', workspaceDir, archiveId, digest } as const
      const task = startTask(work, {}, this.#tasks.withClosing(stopping.signal))
      finished = this.#tasks.track(task.finished)
      yield* task.stdout
      await finished
    } catch (error) {
      throw toArchiveError(key, error)
    } finally {
      // The reader may stop before the end.
      stopping.abort()
      await finished?.catch(() => {})
      leave()
    }
  }
}

const toInfo = ({ contentBytes, storedBytes, pausedMs }: Manifest): ArchiveInfo => ({
  contentBytes,
  storedBytes,
  pausedMs,
})

export const createArchives = (options: ArchivesOptions): Archives => new Archives(options)

function toArchiveError({ archiveId }: ArchiveKey, error: unknown): unknown {
  if (!(error instanceof DamagedArchiveError)) return error
  return new ArchiveError(
    `Archive ${archiveId} cannot be restored: ${error.message}. Use another snapshot.`,
    { cause: error },
  )
}
