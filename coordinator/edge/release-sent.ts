// Gives the memory of passed-on bytes back as soon as they are sent, instead of when the garbage collector runs.
import type { Readable, Writable } from 'node:stream'
import { freeBytes } from '../../shared/free-bytes.ts'

/**
 * For a sink that something is about to be piped into, and a source whose chunks nobody else keeps: each chunk's memory
 * is freed once the sink has handed it to the system. At full speed the collector would run after every 64 MiB, and each
 * chunk would be written to memory that has long left the processor's caches.
 */
export function releaseSentChunks(sink: Writable): void {
  sink.once('pipe', (source: Readable) => {
    let held: Buffer[] = []
    const release = () => {
      const sent = held
      held = []
      for (const chunk of sent) freeBytes(chunk)
    }
    source.on('data', (chunk: Buffer) => {
      if (sink.writableLength === 0) release()
      held.push(chunk)
    })
    sink.on('drain', release)
    sink.once('close', release)
  })
}
