// Copies the files of a box into another one without the store, in a worker thread. The stream is that of an archive.
import type { Readable } from 'node:stream'
import { AclFilter } from './acl-filter.ts'
import { parseUsage, readStream } from './read-box.ts'
import { readTarOutput, startTar, TarError } from './run-tar.ts'
import { SpaceCheck } from './space-check.ts'
import { StoreLimitError } from './store-limits.ts'
import type { WorkerTask } from './worker-task.ts'
import { MAX_BUFFERED_BYTES, waitUntilDrained } from './write-stream.ts'

export type TreeCopy = {
  /**
   * Reads the files and writes them. Resolves when all are written, with the disk space that they occupy.
   * @param onRead called when all files are read
   */
  run(onRead: () => Promise<void>): Promise<number>
  /** Terminates what is left of a copy that has not run, or has failed. */
  close(): Promise<void>
}

/** Starts the tar that writes, so that its start does not lengthen the pause of the box. */
export function startTreeCopy(
  { pack, unpack, measure, limits, ...tools }: WorkerTask & { kind: 'copy-tree' },
  signal: AbortSignal,
): TreeCopy {
  const writing = new AbortController()
  const writer = startTar(unpack, AbortSignal.any([signal, writing.signal]))
  writer.stdout.resume()
  const target = writer.stdin
  const space = new SpaceCheck(
    unpack.cwd,
    limits.reserveBytes,
    'The disk of the boxes is almost full. Free space on it, then try again.',
  )
  const written = writer.exited.catch((error: unknown) => {
    if (!(error instanceof TarError)) throw error
    space.checkFailure()
    if (error.message.endsWith('File name too long'))
      throw new StoreLimitError('A path of the box is longer than 4095 bytes. Shorten it, then try again.')
    throw new Error(`The files of the copy could not be written: ${error.message}`, { cause: error })
  })
  written.catch(() => {})
  const filter = new AclFilter(tools)
  let streamBytes = 0

  async function forward(stream: Readable): Promise<void> {
    for await (const data of stream) {
      streamBytes += data.length
      if (streamBytes > limits.maxBytes)
        throw new StoreLimitError(
          'The files of the box are too large for a copy. Delete some of them, then try again.',
        )
      space.add(data.length)
      target.write(filter.push(data))
      if (target.writableLength > MAX_BUFFERED_BYTES) await waitUntilDrained(target)
      // tar has exited, which is a failure before the end of the stream.
      if (target.destroyed) await written
    }
  }

  return {
    async run(onRead) {
      await readStream(pack, signal, forward)
      target.end()
      await onRead()
      await written
      return parseUsage(await readTarOutput(measure, signal))
    },
    async close() {
      writing.abort()
      await written.catch(() => {})
    },
  }
}
