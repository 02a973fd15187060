// The archive store of the local provider: the files of boxes as deduplicated, compressed and verified chunks.
import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdir, readdir, rename } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pLimit from 'p-limit'
import { TIERS } from '../../../../../shared/tiers.ts'
import { ArchiveError, type ArchiveInfo, type ArchiveKey } from '../../../provider.ts'
import { runInTurn } from '../run-in-turn.ts'
import { type Manifest, readManifest } from './manifest.ts'
import { createMeasuredPause, type Pause } from './measured-pause.ts'
import { startTask } from './run-task.ts'
import { archivePath, DamagedArchiveError, storeDirs } from './store-files.ts'
import { type BoxFiles, buildTarCommands, probeTarTools, type TarTools } from './tar.ts'
import { type Collect, createWorkspaces } from './workspaces.ts'

export type ArchivesOptions = {
  /** Contains a directory per workspace. */
  dir: string
  log: { warn(fields: object, message: string): void }
  /** The maximum length of the tar stream of an archive. Default: the disk of the largest tier. */
  maxBytes?: number
  /** The free space that captures leave on the disk. Default: 4 GB, which is more than the disk monitor requires. */
  reserveBytes?: number
  /** For tests. Default: what works on this machine. */
  tools?: TarTools
}

export type CaptureOptions = {
  /** Absent: the machine is not running. */
  pause?: Pause | undefined
  /** Throws when the files may have changed while they were read. */
  verify?: (() => void) | undefined
  signal?: AbortSignal | undefined
}

/** Each task keeps about one core busy. The others wait. */
const MAX_CONCURRENT_TASKS = Math.max(2, availableParallelism())
const MAX_BYTES = TIERS.ultra.diskGb * 1000 ** 3
const RESERVE_BYTES = 4 * 1000 ** 3
const ID_PATTERN = /^\w{1,64}$/

export type Archives = ReturnType<typeof createArchives>

export function createArchives(options: ArchivesOptions) {
  const { dir, log, maxBytes = MAX_BYTES, reserveBytes = RESERVE_BYTES } = options
  const limits = { maxBytes, reserveBytes }
  const closing = new AbortController()
  const limit = pLimit(MAX_CONCURRENT_TASKS)
  const running = new Set<Promise<unknown>>()
  let tools = options.tools && Promise.resolve(options.tools)

  const collect: Collect = async (workspaceId, scope) => {
    await track(startTask({ kind: 'collect', scope, workspaceDir: workspaceDirOf(workspaceId) }).finished)
  }
  const workspaces = createWorkspaces({
    collect,
    // The last coordinator may have been killed. A capture has a temporary directory until it is complete.
    hasGarbage(workspaceId) {
      const { temp, removed } = storeDirs(workspaceDirOf(workspaceId))
      return [temp, removed].some((path) => existsSync(path) && readdirSync(path).length > 0)
    },
    onError: (err) => log.warn({ err }, 'failed to remove unused data of archives; the next use tries again'),
  })
  void track(sweep())

  function workspaceDirOf(workspaceId: string): string {
    // Parts of paths that are removed recursively.
    if (!ID_PATTERN.test(workspaceId)) throw new Error(`Not a workspace id: ${workspaceId}`)
    return join(dir, workspaceId)
  }

  type Location = ReturnType<typeof locate>

  function locate({ workspaceId, archiveId }: ArchiveKey) {
    if (!ID_PATTERN.test(archiveId)) throw new Error(`Not an archive id: ${archiveId}`)
    const workspaceDir = workspaceDirOf(workspaceId)
    const dirs = storeDirs(workspaceDir)
    return { workspaceDir, archiveId, dirs, path: archivePath(dirs, archiveId) }
  }

  function track<T>(work: Promise<T>): Promise<T> {
    running.add(work)
    const remove = () => running.delete(work)
    work.then(remove, remove)
    return work
  }

  /** Removes what a killed coordinator left, in the background. A use of a workspace does not wait for the others. */
  async function sweep(): Promise<void> {
    const names = existsSync(dir) ? await readdir(dir) : []
    for (const workspaceId of names.filter((name) => ID_PATTERN.test(name))) {
      if (closing.signal.aborted) return
      await workspaces.enter(workspaceId).then(
        (leave) => leave(),
        (err: unknown) => log.warn({ err, workspaceId }, 'failed to remove unused data of archives'),
      )
    }
  }

  /** Runs the work when there is a slot. */
  const run = <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => runInTurn(limit, signal, work)

  const getTools = (uid: number | null): Promise<TarTools> => {
    tools ??= probeTarTools(uid === null ? undefined : { uid, gid: uid }).catch((error: unknown) => {
      tools = undefined
      throw error
    })
    return tools
  }

  const withClosing = (signal?: AbortSignal): AbortSignal =>
    signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal])

  /** Stores an archive unless it exists. After a failure, the incomplete archive is removed. */
  async function add(
    key: ArchiveKey,
    signal: AbortSignal,
    store: (location: Location) => Promise<Manifest | null>,
  ): Promise<ArchiveInfo> {
    const location = locate(key)
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const manifest = await workspaces
      .use(key.workspaceId, () =>
        run(signal, async () =>
          existsSync(location.path) ? readManifest(location.path) : await store(location),
        ),
      )
      .catch(async (error: unknown) => {
        await workspaces.addGarbage(key.workspaceId, 'all').catch((err: unknown) => {
          log.warn({ err }, 'failed to remove the data of an incomplete archive')
        })
        throw toArchiveError(key, error)
      })
    if (manifest === null) throw new Error('The archive has no manifest.')
    const { contentBytes, storedBytes, pausedMs } = manifest
    return { contentBytes, storedBytes, pausedMs }
  }

  async function capture(
    files: BoxFiles,
    key: ArchiveKey,
    { pause, verify, signal: callerSignal }: CaptureOptions = {},
  ): Promise<ArchiveInfo> {
    const signal = withClosing(callerSignal)
    // The user of the box enters its directories by their paths.
    if (files.uid !== null) await chmod(files.dir, 0o711)
    const commands = buildTarCommands(await getTools(files.uid), files)
    const isPaused = pause !== undefined
    const store = async (location: Location): Promise<Manifest | null> => {
      const { workspaceDir, archiveId } = location
      const task = { kind: 'capture', workspaceDir, archiveId, limits, commands, isPaused } as const
      const measuredPause = createMeasuredPause(pause)
      const hooks = {
        async ready() {
          await measuredPause.start()
          return { kind: 'start' } as const
        },
        async read() {
          const pausedMs = await measuredPause.end()
          verify?.()
          return { kind: 'resumed', pausedMs } as const
        },
      }
      try {
        return await startTask(task, hooks, signal).finished
      } finally {
        await measuredPause.end()
      }
    }
    return await track(add(key, signal, store))
  }

  /** Writes the files into the existing directories of `files`. */
  async function restore(key: ArchiveKey, files: BoxFiles, callerSignal?: AbortSignal): Promise<void> {
    const { workspaceDir, archiveId, path } = locate(key)
    const { unpack: command } = buildTarCommands(await getTools(files.uid), files)
    const signal = withClosing(callerSignal)
    const work = workspaces.use(key.workspaceId, () =>
      run(signal, async () => {
        const { digest } = readManifest(path)
        const task = { kind: 'restore', workspaceDir, archiveId, digest, command } as const
        return await startTask(task, {}, signal).finished
      }),
    )
    await track(work).catch((error: unknown) => {
      throw toArchiveError(key, error)
    })
  }

  async function remove(key: ArchiveKey): Promise<void> {
    const { dirs, path, archiveId } = locate(key)
    if (!existsSync(path)) return
    await mkdir(dirs.removed, { recursive: true, mode: 0o700 })
    await rename(path, join(dirs.removed, archiveId))
    await track(workspaces.addGarbage(key.workspaceId, 'removed'))
  }

  async function removeAll(workspaceId: string): Promise<void> {
    const dirs = storeDirs(workspaceDirOf(workspaceId))
    if (!existsSync(dirs.dir)) return
    await mkdir(dirs.removed, { recursive: true, mode: 0o700 })
    const archiveIds = existsSync(dirs.archives) ? await readdir(dirs.archives) : []
    for (const archiveId of archiveIds)
      await rename(archivePath(dirs, archiveId), join(dirs.removed, archiveId))
    await track(workspaces.addGarbage(workspaceId, 'all'))
  }

  async function* readStream(key: ArchiveKey): AsyncGenerator<Buffer> {
    const { workspaceDir, archiveId, path } = locate(key)
    const stopping = new AbortController()
    const leave = await workspaces.enter(key.workspaceId)
    let finished: Promise<unknown> | undefined
    try {
      const { digest } = readManifest(path)
      const work = { kind: 'read', workspaceDir, archiveId, digest } as const
      const task = startTask(work, {}, withClosing(stopping.signal))
      finished = track(task.finished)
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

  async function write(key: ArchiveKey, content: Readable, callerSignal?: AbortSignal): Promise<ArchiveInfo> {
    const signal = withClosing(callerSignal)
    const work = add(key, signal, async ({ workspaceDir, archiveId }) => {
      const failing = new AbortController()
      const task = { kind: 'write', workspaceDir, archiveId, limits } as const
      const { stdin, finished } = startTask(task, {}, AbortSignal.any([signal, failing.signal]))
      if (stdin === null) throw new Error('The thread of the archive store has no stdin.')
      const piped = pipeline(content, stdin).catch((error: unknown) => failing.abort(error))
      // A thread that fails does not read the rest.
      finished.catch(() => content.destroy())
      const manifest = await finished
      await piped
      return manifest
    })
    return await track(work)
  }

  return {
    capture,
    restore,
    remove,
    removeAll,
    read: (key: ArchiveKey): Readable => Readable.from(readStream(key), { objectMode: false }),
    write,
    hold: async () => ({ dir, release: await workspaces.hold() }),
    /** Terminates what runs. */
    async close() {
      closing.abort(new Error('The coordinator is shutting down.'))
      while (running.size > 0) await Promise.allSettled(running)
    },
  }
}

function toArchiveError({ archiveId }: ArchiveKey, error: unknown): unknown {
  if (!(error instanceof DamagedArchiveError)) return error
  return new ArchiveError(
    `Archive ${archiveId} cannot be restored: ${error.message}. Use another snapshot.`,
    {
      cause: error,
    },
  )
}
