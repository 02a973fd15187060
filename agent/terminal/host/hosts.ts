// The terminal hosts of the box: starts one for each session, and finds those of an earlier agent.
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { ApiError } from '../../../shared/errors.ts'
import { isId } from '../../../shared/ids.ts'
import { NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { isPendingRemoval, readStartRecord, removeDirectory } from '../../exec/detached/record.ts'
import { createLauncher, type Launch } from '../../exec/native-launcher.ts'
import { findNativeProgram } from '../../exec/native-program.ts'
import type { SpawnerKind } from '../../exec/spawner.ts'
import { toStartError } from '../../exec/start-error.ts'
import { getSystemErrorCode } from '../../files/errors.ts'
import { isAlive, PROCESS_ID_VARIABLE } from '../../process-table.ts'
import type { Pty, PtyOptions } from '../pty.ts'
import { HostConnection } from './connection.ts'
import {
  hasRecordedMarker,
  readMetadata,
  type SessionMetadata,
  writeMetadata,
  writeRecordedMarker,
} from './directory.ts'
import { createHostedPty } from './hosted-pty.ts'

export type HostedSession = {
  pty: Pty
  metadata: SessionMetadata
  processId: string
  /** The exit is in the history. */
  isRecorded: boolean
  /** The next agent does not record the exit again. */
  markRecorded(): void
}

export type TerminalHosts = {
  /**
   * Starts the host of a session, and the program. null where the host was not compiled, or the disk is full.
   * @throws ApiError exec_failed, and system errors
   */
  start(processId: string, metadata: SessionMetadata, program: PtyOptions): Promise<HostedSession | null>
  /**
   * The sessions of the earlier agent, oldest first. Removes the directories of those whose host has exited. Keeps those whose host
   * runs and cannot be used, because it has another version or does not respond: a later agent may be able to use it.
   */
  restore(): Promise<HostedSession[]>
}

export type TerminalHostsOptions = {
  /** State directory of the sessions. Created when missing. */
  dir: string
  spawnerKind?: SpawnerKind | null
  log: Logger
}

export function createTerminalHosts({ dir, spawnerKind = null, log }: TerminalHostsOptions): TerminalHosts {
  let launch: Launch | null | undefined

  const remove = (path: string): Promise<void> =>
    removeDirectory(path).catch((err: unknown) =>
      log.error({ err, path }, 'failed to remove the directory of a terminal session'),
    )

  /** undefined: the program has not been started, or its host has exited. */
  async function open(processId: string, metadata: SessionMetadata): Promise<HostedSession | undefined> {
    const path = join(dir, processId)
    const processes = readStartRecord(path)
    if (processes === undefined) return undefined
    const opened = await HostConnection.open(path).catch((err: unknown) =>
      log.warn({ err, session: metadata.session }, 'cannot connect to a terminal host'),
    )
    if (opened === undefined) return undefined
    return {
      pty: createHostedPty({ ...opened, processes, log, onRelease: () => remove(path) }),
      metadata,
      processId,
      isRecorded: hasRecordedMarker(path),
      markRecorded() {
        try {
          writeRecordedMarker(path)
        } catch (err) {
          log.warn(
            { err, session: metadata.session },
            'the next agent may record the exit of a session again',
          )
        }
      },
    }
  }

  async function restoreOne(name: string): Promise<HostedSession[]> {
    const path = join(dir, name)
    // The agent was killed during the removal.
    if (isPendingRemoval(name)) await rm(path, { recursive: true, force: true })
    if (!isId('process', name)) return []
    const metadata = readMetadata(path)
    const hosted = metadata && (await open(name, metadata))
    if (hosted !== undefined) return [hosted]
    const host = readStartRecord(path)?.runner
    if (host !== undefined && isAlive(host)) return []
    // A host whose directory is removed exits.
    await remove(path)
    return []
  }

  return {
    async start(processId, metadata, { file, args, cwd, env, cols, rows }) {
      if (launch === undefined) {
        const program = findNativeProgram(NATIVE_PARTS.terminalHost)
        launch = program === undefined ? null : createLauncher(program, spawnerKind)
      }
      if (launch === null) return null
      const path = join(dir, processId)
      // The host sets this variable for the program. The environment of the host must not have it.
      const { [PROCESS_ID_VARIABLE]: _, ...hostEnv } = env
      try {
        await mkdir(dir, { recursive: true, mode: 0o700 })
        await mkdir(path, { mode: 0o700 })
        await writeMetadata(path, metadata)
        await launch(path, [cwd, String(cols), String(rows), file, file, ...args], hostEnv)
        const hosted = await open(processId, metadata)
        if (hosted === undefined) throw new ApiError('exec_failed', HOST_LOST)
        return hosted
      } catch (err) {
        await remove(path)
        // A person needs a terminal to free space.
        if (!DISK_ERRORS.some((code) => code === getSystemErrorCode(err))) throw toStartError(err)
        log.warn({ err, session: metadata.session }, 'a terminal session has no host: the disk is full')
        return null
      }
    },
    async restore() {
      const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return []
        throw error
      })
      const restored = await Promise.all(names.map(restoreOne))
      return restored.flat().sort((a, b) => a.metadata.startedAt - b.metadata.startedAt)
    },
  }
}

const HOST_LOST = 'The terminal cannot be opened: its host has exited. Try again.'
const DISK_ERRORS = ['ENOSPC', 'EDQUOT']
