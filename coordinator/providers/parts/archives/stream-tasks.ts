// The tasks of the archive store that exchange messages or a stream with their thread.
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Manifest } from './manifest.ts'
import { createMeasuredPause, type Pause } from './measured-pause.ts'
import { startTask, type TaskHooks } from './run-task.ts'
import type { WorkerTask } from './worker-task.ts'

export type ReadOptions = {
  /** Called when the thread is ready to read. The pause ends when all files are read. */
  pause: Pause | undefined
  /** Called after the pause: throws when the files may have changed while they were read. */
  verify: (() => void) | undefined
  /** The pause before the task. */
  pausedMs?: number | null | undefined
}

/** Runs a task that reads the files of a box. */
async function runRead(
  task: WorkerTask & { kind: 'capture' | 'copy-tree' },
  { pause, verify, pausedMs = null }: ReadOptions,
  signal: AbortSignal,
) {
  const measuredPause = createMeasuredPause(pause)
  const info: StreamInfo = { contentBytes: 0, pausedMs: null }
  const hooks: TaskHooks = {
    async ready() {
      await measuredPause.start()
      return { kind: 'start' }
    },
    measured(contentBytes) {
      info.contentBytes = contentBytes
    },
    async read() {
      info.pausedMs = (await measuredPause.end()) ?? pausedMs
      verify?.()
      return { kind: 'resumed', pausedMs: info.pausedMs }
    },
  }
  try {
    return { manifest: await startTask(task, hooks, signal).finished, info }
  } finally {
    await measuredPause.end()
  }
}

/** Stores the files of a box. */
export const runCapture = async (
  task: WorkerTask & { kind: 'capture' },
  options: ReadOptions,
  signal: AbortSignal,
): Promise<Manifest | null> => (await runRead(task, options, signal)).manifest

/** Copies the files of a box. */
export const runTreeCopy = async (
  task: WorkerTask & { kind: 'copy-tree' },
  options: ReadOptions,
  signal: AbortSignal,
): Promise<StreamInfo> => (await runRead(task, options, signal)).info

/** What is known at the end of a stream that a provider has read from a machine. */
export type StreamInfo = { contentBytes: number; pausedMs: number | null }

/**
 * Stores a tar stream.
 * @param getInfo for a task with `isPaused`: called at the end of the stream
 */
export async function runWrite(
  task: WorkerTask & { kind: 'write' },
  content: Readable,
  signal: AbortSignal,
  getInfo?: () => StreamInfo,
): Promise<Manifest | null> {
  const failing = new AbortController()
  const hooks =
    getInfo === undefined ? {} : { read: async () => ({ kind: 'resumed', ...getInfo() }) as const }
  const { stdin, finished } = startTask(task, hooks, AbortSignal.any([signal, failing.signal]))
  if (stdin === null) throw new Error('The thread of the archive store has no stdin.')
  const piped = pipeline(content, stdin).catch((error: unknown) => failing.abort(error))
  // A thread that fails does not read the rest.
  finished.catch(() => content.destroy())
  const manifest = await finished
  await piped
  return manifest
}
