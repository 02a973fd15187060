// The tasks of the archive store that exchange messages or a stream with their thread.
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Manifest } from './manifest.ts'
import { createMeasuredPause, type Pause } from './measured-pause.ts'
import { startTask } from './run-task.ts'
import type { WorkerTask } from './worker-task.ts'

/**
 * Stores the files of a box.
 * @param options.pause called when the thread is ready to read. The pause ends when all files are read.
 * @param options.verify called after the pause: throws when the files may have changed while they were read
 */
export async function runCapture(
  task: WorkerTask & { kind: 'capture' },
  { pause, verify }: { pause: Pause | undefined; verify: (() => void) | undefined },
  signal: AbortSignal,
): Promise<Manifest | null> {
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
