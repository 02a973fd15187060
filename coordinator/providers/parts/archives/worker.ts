// The worker thread of the archive store: hashes, compresses and verifies, so that the coordinator's thread does not.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { addAbortSignal, type Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { setImmediate as yieldToEvents } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { PermanentProviderError } from '../../provider.ts'
import { AclFilter } from './acl-filter.ts'
import { readChunk } from './chunk-store.ts'
import { collectChunks } from './collect.ts'
import type { Manifest } from './manifest.ts'
import { readBoxFiles } from './read-box.ts'
import { RootFilter } from './root-filter.ts'
import { startTar, TarError } from './run-tar.ts'
import {
  archivePath,
  CHUNK_LIST_FILE,
  DamagedArchiveError,
  readChunkList,
  storeDirs,
  verifyChunkList,
} from './store-files.ts'
import { StoreLimitError } from './store-limits.ts'
import { StreamStore } from './store-stream.ts'
import { startTreeCopy } from './tree-copy.ts'
import type { WorkerErrorKind, WorkerReply, WorkerRequest, WorkerTask } from './worker-task.ts'
import { MAX_BUFFERED_BYTES, waitUntilDrained } from './write-stream.ts'

const port = parentPort
if (port === null) throw new Error('This module runs in a worker thread.')
const task = workerData as WorkerTask
const dirs = storeDirs('workspaceDir' in task ? task.workspaceDir : '')
const aborting = new AbortController()
const { signal } = aborting
const requests = new Map<WorkerRequest['kind'], PromiseWithResolvers<WorkerRequest>>()

const requestOf = (kind: WorkerRequest['kind']): PromiseWithResolvers<WorkerRequest> => {
  const existing = requests.get(kind) ?? Promise.withResolvers<WorkerRequest>()
  requests.set(kind, existing)
  return existing
}

port.on('message', (request: WorkerRequest) => {
  if (request.kind === 'abort') aborting.abort()
  else requestOf(request.kind).resolve(request)
})
const aborted = once(signal, 'abort').then(() => Promise.reject(signal.reason))
aborted.catch(() => {})

const reply = (message: WorkerReply): void => port.postMessage(message)
const receive = (kind: WorkerRequest['kind']): Promise<WorkerRequest> =>
  Promise.race([requestOf(kind).promise, aborted])

function syncFileSystem(dir: string): void {
  execFileSync('sync', ['-f', dir], { stdio: 'ignore' })
}

async function capture(current: WorkerTask & { kind: 'capture' }): Promise<Manifest> {
  const store = new StreamStore(dirs, current.limits, current.isPaused)
  try {
    reply({ kind: 'ready' })
    await receive('start')
    const contentBytes = await readBoxFiles(current.commands, signal, async (stream) => {
      for await (const data of stream) store.push(data)
    })
    reply({ kind: 'read' })
    const resumed = await receive('resumed')
    const pausedMs = resumed.kind === 'resumed' ? resumed.pausedMs : null
    return await finish(store, current.archiveId, { contentBytes, pausedMs })
  } finally {
    store.close()
  }
}

async function copyTree(current: WorkerTask & { kind: 'copy-tree' }): Promise<void> {
  const running = startTreeCopy(current, signal)
  try {
    reply({ kind: 'ready' })
    await receive('start')
    const contentBytes = await running.run(async () => {
      reply({ kind: 'read' })
      await receive('resumed')
    })
    reply({ kind: 'measured', contentBytes })
  } finally {
    await running.close()
  }
  syncFileSystem(current.unpack.cwd)
}

async function finish(
  store: StreamStore,
  archiveId: string,
  info: { contentBytes: number; pausedMs: number | null },
): Promise<Manifest> {
  for (const _ of store.finish()) {
    await yieldToEvents()
    signal.throwIfAborted()
  }
  if (!store.isComplete()) throw new Error('The tar stream is incomplete.')
  return store.commit(archiveId, info, syncFileSystem)
}

async function write(current: WorkerTask & { kind: 'write' }): Promise<Manifest> {
  const store = new StreamStore(dirs, current.limits, current.isPaused)
  try {
    let streamBytes = 0
    for await (const data of addAbortSignal(signal, process.stdin)) {
      streamBytes += data.length
      store.push(data)
    }
    if (!current.isPaused)
      return await finish(store, current.archiveId, { contentBytes: streamBytes, pausedMs: null })
    reply({ kind: 'read' })
    const resumed = await receive('resumed')
    const { pausedMs = null, contentBytes = streamBytes } = resumed.kind === 'resumed' ? resumed : {}
    return await finish(store, current.archiveId, { contentBytes, pausedMs })
  } finally {
    process.stdin.destroy()
    store.close()
  }
}

async function copy(current: WorkerTask & { kind: 'copy' }): Promise<Manifest> {
  const dir = archivePath(dirs, current.source.archiveId)
  verifyChunkList(dir, current.source)
  const store = new StreamStore(dirs, current.limits, false)
  try {
    const filter = new RootFilter(current.roots)
    let contentBytes = 0
    for (const entry of readChunkList(join(dir, CHUNK_LIST_FILE))) {
      const data = filter.push(readChunk(dirs, entry))
      contentBytes += data.length
      store.push(data)
      await yieldToEvents()
      signal.throwIfAborted()
    }
    return await finish(store, current.archiveId, { contentBytes, pausedMs: null })
  } finally {
    store.close()
  }
}

/** Writes the tar stream. Each chunk is verified before it is written. Returns when the target is closed. */
async function loadStream(
  { archiveId, digest }: WorkerTask & { kind: 'restore' | 'read' },
  target: Writable,
  filters: readonly { push(data: Buffer): Buffer }[] = [],
): Promise<void> {
  const dir = archivePath(dirs, archiveId)
  verifyChunkList(dir, { digest })
  for (const entry of readChunkList(join(dir, CHUNK_LIST_FILE))) {
    target.write(filters.reduce((data, filter) => filter.push(data), readChunk(dirs, entry)))
    if (target.writableLength > MAX_BUFFERED_BYTES) await waitUntilDrained(target)
    else await yieldToEvents()
    if (target.destroyed) break
  }
  target.end()
  signal.throwIfAborted()
}

async function restore(current: WorkerTask & { kind: 'restore' }): Promise<void> {
  const tar = startTar(current.command, signal)
  tar.stdout.resume()
  try {
    const selection = current.selected === null ? [] : [new RootFilter(current.selected)]
    await loadStream(current, tar.stdin, [...selection, new AclFilter(current)])
  } catch (error) {
    aborting.abort()
    await tar.exited.catch(() => {})
    throw error
  }
  await tar.exited
}

async function runTask(): Promise<Manifest | null> {
  if (task.kind === 'capture') return await capture(task)
  if (task.kind === 'write') return await write(task)
  if (task.kind === 'copy') return await copy(task)
  if (task.kind === 'copy-tree') await copyTree(task)
  else if (task.kind === 'restore') await restore(task)
  else if (task.kind === 'read') {
    const stdout = addAbortSignal(signal, process.stdout)
    await loadStream(task, stdout)
    await finished(stdout)
  } else collectChunks(dirs, task.scope)
  return null
}

function describeFailure(error: unknown): { error: WorkerErrorKind; message: string } {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof DamagedArchiveError) return { error: 'damaged', message }
  if (error instanceof StoreLimitError || error instanceof PermanentProviderError)
    return { error: 'permanent', message }
  if (!(error instanceof TarError)) return { error: 'other', message }
  if (task.kind === 'restore')
    return { error: 'other', message: `The files of the box could not be written: ${message}` }
  const problem = `The files of the box could not be read: ${message}`
  if (!message.endsWith('Permission denied')) return { error: 'other', message: problem }
  return { error: 'permanent', message: `${problem}. Change its mode with chmod, then try again.` }
}

try {
  reply({ kind: 'done', manifest: await runTask() })
} catch (error) {
  reply({ kind: 'failed', ...describeFailure(error) })
}
// An unread stdin would keep the thread running.
process.exit()
