// The tasks of the worker thread of the archive store, and the messages between the thread and the coordinator.
import type { Manifest } from './manifest.ts'
import type { StoreLimits } from './store-limits.ts'
import type { ReadCommands, TarCommand, TarTools } from './tar.ts'

type Archive = {
  /** The directory of the workspace. */
  workspaceDir: string
  archiveId: string
}

export type WorkerTask =
  | ({
      kind: 'capture'
      limits: StoreLimits
      commands: ReadCommands
      /** The processes of the machine are paused while the files are read. */
      isPaused: boolean
    } & Archive)
  /** Stores a tar stream, from stdin. */
  | ({
      kind: 'write'
      limits: StoreLimits
      /** New chunks are stored after the end of the stream, as in a capture. Then the thread sends `read`. */
      isPaused: boolean
    } & Archive)
  /** Stores the entries of the archive `source` that are in the directories `roots`. */
  | ({
      kind: 'copy'
      limits: StoreLimits
      source: Pick<Archive, 'archiveId'> & Pick<Manifest, 'digest'>
      roots: readonly string[]
    } & Archive)
  /** Copies the files of a box to where `unpack` runs. Nothing is stored. */
  | ({
      kind: 'copy-tree'
      limits: StoreLimits
      pack: TarCommand
      unpack: TarCommand
      /** Measures what `unpack` has written. */
      measure: TarCommand
    } & TarTools)
  /** @param selected the directories of which the files are written; null: all */
  | ({ kind: 'restore'; command: TarCommand; selected: readonly string[] | null } & TarTools &
      Archive &
      Pick<Manifest, 'digest'>)
  /** Writes the tar stream to stdout. */
  | ({ kind: 'read' } & Archive & Pick<Manifest, 'digest'>)
  | { kind: 'collect'; scope: 'all' | 'removed'; workspaceDir: string }

export type WorkerRequest =
  /** Reads the files of the box. */
  | { kind: 'start' }
  /** The answer to `read`. */
  | { kind: 'resumed'; pausedMs: number | null; contentBytes?: number }
  | { kind: 'abort' }

export type WorkerErrorKind = 'damaged' | 'permanent' | 'other'

export type WorkerReply =
  /** The thread waits for `start`. */
  | { kind: 'ready' }
  /** The files of the box, or the stream, are no longer needed. */
  | { kind: 'read' }
  /** The disk space that the copied files occupy. */
  | { kind: 'measured'; contentBytes: number }
  | { kind: 'done'; manifest: Manifest | null }
  | { kind: 'failed'; error: WorkerErrorKind; message: string }
