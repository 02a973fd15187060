// Paths of open file descriptors, such as /dev/fd/63, which the shell passes for <(command) and >(command).
import { fstatSync } from 'node:fs'
import { Socket } from 'node:net'

const PATTERN = /^\/(?:dev|proc\/self)\/fd\/(\d{1,9})$/
const STANDARD_STREAMS: Record<string, number> = { '/dev/stdin': 0, '/dev/stdout': 1, '/dev/stderr': 2 }

/** The stream of a pipe or socket that this process has open; null for any other path. */
export function openPipe(path: string, direction: 'read' | 'write'): Socket | null {
  const fd = STANDARD_STREAMS[path] ?? Number(PATTERN.exec(path)?.[1] ?? Number.NaN)
  if (Number.isNaN(fd)) return null
  try {
    const stats = fstatSync(fd)
    if (!stats.isFIFO() && !stats.isSocket()) return null
  } catch {
    return null
  }
  // A Socket waits without a thread. A thread that is blocked in open or read would prevent the exit after Ctrl-C.
  return new Socket({ fd, readable: direction === 'read', writable: direction === 'write' })
}
