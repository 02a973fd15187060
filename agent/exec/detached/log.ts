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
  /** Of the last read: until there is one, nothing counts as written a moment ago. */
  let seenSize = Number.POSITIVE_INFINITY
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
          const fresh = finalSize() === null && offset >= seenSize - FRESH_BYTES
          const read = fresh ? readNow(handle.fd, offset, max) : await readLater(handle, offset, max)
          // A hole reads as zeros: what has become one must not pass for output. Asked after the reading, so that what
          // was given up in the meantime counts too.
          const size = clamp(fstatSync(handle.fd).size)
          seenSize = size
          const head = headOf(size, keepBytes)
          const bytes = read.subarray(0, Math.max(0, size - offset))
          const lost = head - offset
          if (lost <= 0) return { offset, bytes }
          if (lost < bytes.length) return { offset: head, bytes: bytes.subarray(lost) }
          offset = head
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

/** Read to by whoever reads now, and by nobody else until it is copied. */
const scratch = Buffer.allocUnsafeSlow(FRESH_BYTES)

/** What was written a moment ago is in memory: fetching it takes less than a trip to the thread pool. */
function readNow(fd: number, offset: number, max: number): Buffer {
  const bytesRead = readSync(fd, scratch, 0, Math.min(max, FRESH_BYTES), offset)
  return Buffer.from(scratch.subarray(0, bytesRead))
}

async function readLater(handle: FileHandle, offset: number, max: number): Promise<Buffer> {
  const length = Math.min(max, fstatSync(handle.fd).size - offset)
  if (length <= 0) return Buffer.alloc(0)
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, offset)
  return buffer.subarray(0, bytesRead)
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
