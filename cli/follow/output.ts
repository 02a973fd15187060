// The output of a detached process, each byte once, from where it is kept to where one wants to stop.
import type { Offsets, StreamEvents } from '../../shared/api/processes.ts'
import type { StreamName } from './events.ts'
import { createPlace } from './place.ts'
import { type Resume, resume } from './resume.ts'

export type Chunk = { stream: StreamName; bytes: Buffer; offset: number }
export type Exit = StreamEvents['exit']

export type OutputOptions = Omit<Resume, 'id' | 'take'> & {
  from: Offsets
  /** Where to stop; absent: at the end of the process. */
  until?: Offsets
  onAttached?(): void
  /** The next chunk waits until it settles. */
  onChunk(chunk: Chunk): Promise<void>
  /** Bytes before the next chunk, or before the end, that are no longer kept. */
  onLost(stream: StreamName, bytes: number): void
}

/** Settles with how the process ended, or null when `until` came first. Throws as resume does. */
export async function readOutput(options: OutputOptions): Promise<Exit | null> {
  const { from, until, onAttached, onChunk, onLost } = options
  const place = createPlace(from)
  const isEnough = () => until !== undefined && place.reached(until)
  if (isEnough()) return null
  let exit: Exit | null = null
  const lost = (stream: StreamName, bytes: number) => {
    if (bytes > 0) onLost(stream, bytes)
  }
  await resume({
    ...options,
    id: place.id,
    async take({ name, data }) {
      if (name === 'attached') onAttached?.()
      if (name === 'stdout' || name === 'stderr') {
        const news = place.accept(name, data)
        lost(name, news.lost)
        if (news.bytes.length > 0) await onChunk({ stream: name, bytes: news.bytes, offset: news.offset })
      }
      if (name === 'exit') {
        lost('stdout', place.missing('stdout', data.stdoutOffset))
        lost('stderr', place.missing('stderr', data.stderrOffset))
        exit = data
      }
      return exit !== null || isEnough()
    },
  })
  return exit
}

/** Past the end of every log; there a stream begins at the end, and says where that is. */
const BEYOND = 999_999_999_999_999

/** How long both streams are now. Throws as resume does. */
export async function outputSize(options: Omit<Resume, 'id' | 'take'>): Promise<Offsets> {
  let size: Offsets = { stdout: 0, stderr: 0 }
  await resume({
    ...options,
    id: () => `${BEYOND}:${BEYOND}`,
    async take({ name, data }) {
      if (name !== 'attached') return false
      size = { stdout: data.stdoutOffset, stderr: data.stderrOffset }
      return true
    },
  })
  return size
}
