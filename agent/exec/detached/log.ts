// One stream of a detached process as a file that is read by offset while it is written and given up at its head.
import { fstatSync, readSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { OnChange } from './changes.ts'
import { headOf } from './ring.ts'
import type { LogBytes, OutputLog } from './types.ts'
import { watchFile } from './watch-file.ts'

/** At the end of a log that is being written. */
const FRESH_BYTES = 256 * 1024

export type LogOptions = {
  path: string
  keepBytes: number
  /** Its size when the process ended, null before: what comes later belongs to nobody. */
  finalSize(): number | null
  /** Calls back soon after it was written to; by watching the file unless told. Returns what ends that. */
  onWrite?(changed: OnChange): () => void
}

export function openLog(options: LogOptions): OutputLog {
  const { path, keepBytes, finalSize, onWrite = (changed) => watchFile(path, () => changed()) } = options
  const file = sharedFile(path)
  const readers = new Set<() => void>()
  let stopWatching: (() => void) | undefined
  /** Of the last read: until there is one, nothing counts as written a moment ago. */
  let seenSize = Number.POSITIVE_INFINITY
  const clamp = (size: number) => Math.min(size, finalSize() ?? size)
  /** What was just written, while its readers are told of it. */
  let told: LogBytes | undefined
  const changed = (added?: LogBytes) => {
    told = added
    try {
      for (const reader of [...readers]) reader()
    } finally {
      told = undefined
    }
  }
  /**
   * A hole reads as zeros: what has become one must not pass for output. `size` is of after the reading, so that what was
   * given up in the meantime counts too. null when that is all of it.
   */
  const keptOf = (offset: number, read: Buffer, size: number): LogBytes | null => {
    const bytes = offset + read.length <= size ? read : read.subarray(0, Math.max(0, size - offset))
    const head = headOf(size, keepBytes)
    if (head <= offset) return { offset, bytes }
    return head - offset < bytes.length ? { offset: head, bytes: bytes.subarray(head - offset) } : null
  }

  function readNow(from: number, max: number): LogBytes | null {
    const fd = file.fd()
    if (fd === undefined || finalSize() !== null || from < seenSize - FRESH_BYTES) return null
    if (told?.offset === from && told.bytes.length <= max) {
      seenSize = from + told.bytes.length
      return keptOf(from, told.bytes, seenSize)
    }
    const wanted = Math.min(max, FRESH_BYTES)
    const bytesRead = readSync(fd, scratch, 0, wanted, from)
    // One that came up short has met the end, and knows the size.
    seenSize = bytesRead > 0 && bytesRead < wanted ? from + bytesRead : fstatSync(fd).size
    return keptOf(from, scratch.subarray(0, bytesRead), seenSize)
  }

  return {
    path,
    head: () => headOf(clamp(sizeOf(path)), keepBytes),
    size: async () => clamp(sizeOf(path)),
    async read(from, max) {
      try {
        const handle = await file.use()
        const now = readNow(from, max)
        if (now !== null) return { offset: now.offset, bytes: Buffer.from(now.bytes) }
        for (let offset = from; ; ) {
          const read = await readLater(handle, offset, max)
          seenSize = clamp(fstatSync(handle.fd).size)
          const kept = keptOf(offset, read, seenSize)
          if (kept !== null) return kept
          offset = headOf(seenSize, keepBytes)
        }
      } finally {
        file.release()
      }
    },
    readNow,
    watch(onChange) {
      const reader = () => onChange()
      readers.add(reader)
      stopWatching ??= onWrite(changed)
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

/** What was written a moment ago is in memory: fetching it takes less than a trip to the thread pool. */
const scratch = Buffer.allocUnsafeSlow(FRESH_BYTES)

async function readLater(handle: FileHandle, offset: number, max: number): Promise<Buffer> {
  const length = Math.min(max, fstatSync(handle.fd).size - offset)
  if (length <= 0) return Buffer.alloc(0)
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, offset)
  return buffer.subarray(0, bytesRead)
}

/** A file that is open while someone uses it: each use() is followed by one release(), also where it failed. */
function sharedFile(path: string) {
  let users = 0
  let opening: Promise<FileHandle> | undefined
  let opened: FileHandle | undefined
  return {
    use(): Promise<FileHandle> {
      users++
      opening ??= begin()
      return opening
    },
    /** undefined while it is not open. */
    fd: () => opened?.fd,
    release(): void {
      users--
      if (users > 0) return
      // Where it could not be opened, who asked for it has been told; nothing is lost when a reader's close fails.
      void opening?.then((handle) => handle.close()).catch(() => undefined)
      opening = undefined
      opened = undefined
    },
  }

  function begin(): Promise<FileHandle> {
    const begun = open(path, 'r').then(
      (handle) => {
        if (opening === begun) opened = handle
        return handle
      },
      (error: unknown) => {
        if (opening === begun) opening = undefined
        throw error
      },
    )
    return begun
  }
}

/** One small call into the page cache of metadata: less than a trip to the thread pool. */
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
