// One stream of a detached process as a file that is read by offset while it is written and given up at its head.
import { type FSWatcher, fstatSync, readSync, statSync, watch } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { headOf } from './ring.ts'
import type { OutputLog } from './types.ts'

/** Where the system has no watch left to give. */
const POLL_MS = 200
/** At the end of a log that is being written. */
const FRESH_BYTES = 256 * 1024

export type LogOptions = {
  path: string
  keepBytes: number
  /** Its size when the process ended, null before: what comes later belongs to nobody. */
  finalSize(): number | null
}

export function openLog({ path, keepBytes, finalSize }: LogOptions): OutputLog {
  const file = sharedFile(path)
  const readers = new Set<() => void>()
  let stopWatching: (() => void) | undefined
  const clamp = (size: number) => Math.min(size, finalSize() ?? size)
  const changed = () => {
    for (const reader of [...readers]) reader()
  }

  return {
    path,
    head: () => headOf(clamp(sizeOf(path)), keepBytes),
    size: async () => clamp(sizeOf(path)),
    async read(from, max) {
      try {
        const handle = await file.use()
        for (let offset = from; ; ) {
          const size = clamp(fstatSync(handle.fd).size)
          offset = Math.max(offset, headOf(size, keepBytes))
          const length = Math.min(max, size - offset)
          if (length <= 0) return { offset, bytes: Buffer.alloc(0) }
          const buffer = Buffer.allocUnsafe(length)
          // What was written a moment ago is in memory: fetching it takes less than a trip to the thread pool.
          const fresh = finalSize() === null && size - offset <= FRESH_BYTES
          const bytesRead = fresh
            ? readSync(handle.fd, buffer, 0, length, offset)
            : (await handle.read(buffer, 0, length, offset)).bytesRead
          // A hole reads as zeros: what became one in the meantime must not pass for output.
          const head = headOf(clamp(fstatSync(handle.fd).size), keepBytes)
          const lost = Math.max(0, head - offset)
          if (lost < bytesRead) return { offset: offset + lost, bytes: buffer.subarray(lost, bytesRead) }
          // Emptied by someone else: nothing is there now.
          if (bytesRead === 0) return { offset, bytes: Buffer.alloc(0) }
        }
      } finally {
        file.release()
      }
    },
    watch(onChange) {
      const reader = () => onChange()
      readers.add(reader)
      stopWatching ??= watchFile(path, changed)
      // One that follows reads again and again: then it stays open. Whether it can be, the read will tell.
      file.use().catch(() => undefined)
      return () => {
        if (!readers.delete(reader)) return
        file.release()
        if (readers.size > 0) return
        stopWatching?.()
        stopWatching = undefined
      }
    },
  }
}

/** A file that is open while someone uses it: each use() is followed by one release(), also where it failed. */
function sharedFile(path: string) {
  let users = 0
  let opened: Promise<FileHandle> | undefined
  return {
    use(): Promise<FileHandle> {
      users++
      opened ??= open(path, 'r').catch((error: unknown) => {
        opened = undefined
        throw error
      })
      return opened
    },
    release(): void {
      users--
      if (users > 0) return
      // Where it could not be opened, who asked for it has been told; nothing is lost when a reader's close fails.
      void opened?.then((handle) => handle.close()).catch(() => undefined)
      opened = undefined
    },
  }
}

/** One small call into the page cache of metadata: less than a trip to the thread pool. */
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Calls back at each change; by looking again and again where nothing can be watched. */
export function watchFile(path: string, changed: (name: string | null) => void): () => void {
  let watcher: FSWatcher | undefined
  let timer: NodeJS.Timeout | undefined
  const poll = () => {
    watcher?.close()
    timer ??= setInterval(() => changed(null), POLL_MS).unref()
  }
  try {
    watcher = watch(path, { persistent: false }, (_event, name) => changed(name))
    watcher.on('error', poll)
  } catch {
    poll()
  }
  return () => {
    watcher?.close()
    clearInterval(timer)
  }
}
