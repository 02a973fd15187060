// Runs a task of the archive store in a worker thread.
import { extname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { Worker } from 'node:worker_threads'
import { PermanentProviderError } from '../../provider.ts'
import type { Manifest } from './manifest.ts'
import { DamagedArchiveError } from './store-files.ts'
import type { WorkerReply, WorkerRequest, WorkerTask } from './worker-task.ts'

/** The names of chunks during a collection are the largest data of a thread. */
const WORKER_HEAP_MIB = 512

export type RunningTask = {
  /** The tar stream of the task `write`. */
  stdin: Writable | null
  /** The tar stream of the task `read`. */
  stdout: Readable
  /** Resolves when the thread has exited. Rejects with DamagedArchiveError, PermanentProviderError, the reason of the signal, or Error. */
  finished: Promise<Manifest | null>
}

export type TaskHooks = {
  /** The thread waits. The result is sent to it when the promise resolves. */
  [Kind in 'ready' | 'read']?: () => Promise<WorkerRequest>
} & { measured?: (contentBytes: number) => void }

export function startTask(task: WorkerTask, hooks: TaskHooks = {}, signal?: AbortSignal): RunningTask {
  const worker = new Worker(join(import.meta.dirname, `worker${extname(import.meta.filename)}`), {
    workerData: task,
    stdin: task.kind === 'write',
    stdout: task.kind === 'read',
    resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MIB },
  })
  const abort = () => worker.postMessage({ kind: 'abort' } satisfies WorkerRequest)
  let outcome: { manifest: Manifest | null } | { error: unknown } = {
    error: new Error('The thread of the archive store exited unexpectedly.'),
  }
  const fail = (error: unknown) => {
    outcome = { error }
  }
  /** A failed hook is the reason for the failure that the aborted thread reports. */
  let hookError: { reason: unknown } | undefined

  async function runHook(kind: 'ready' | 'read'): Promise<void> {
    try {
      const request = await hooks[kind]?.()
      if (request !== undefined) worker.postMessage(request)
    } catch (reason) {
      hookError = { reason }
      abort()
    }
  }

  worker.on('message', (reply: WorkerReply) => {
    if (reply.kind === 'ready' || reply.kind === 'read') void runHook(reply.kind)
    else if (reply.kind === 'measured') hooks.measured?.(reply.contentBytes)
    else if (reply.kind === 'done') outcome = { manifest: reply.manifest }
    else fail(hookError?.reason ?? toError(reply, signal))
  })
  worker.on('error', fail)
  signal?.addEventListener('abort', abort)
  if (signal?.aborted === true) abort()
  const finished = new Promise<Manifest | null>((resolve, reject) => {
    worker.on('exit', () => {
      signal?.removeEventListener('abort', abort)
      if ('manifest' in outcome) resolve(outcome.manifest)
      else reject(outcome.error)
    })
  })
  finished.catch(() => {})
  return { stdin: worker.stdin, stdout: worker.stdout, finished }
}

function toError(reply: WorkerReply & { kind: 'failed' }, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason
  if (reply.error === 'damaged') return new DamagedArchiveError(reply.message)
  return reply.error === 'permanent' ? new PermanentProviderError(reply.message) : new Error(reply.message)
}
