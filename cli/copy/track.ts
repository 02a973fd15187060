// Passes bytes on unchanged and counts them for the progress.
import type { Progress } from './progress.ts'

export async function* trackFile(
  source: AsyncIterable<Buffer>,
  progress: Progress,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of source) {
    progress.addBytes(chunk.length)
    yield chunk
  }
  progress.addFile()
}

/** Counts the files of a tar archive and the bytes of their content, without headers and padding. */
export async function* trackArchive(
  archive: AsyncIterable<Buffer>,
  progress: Progress,
): AsyncGenerator<Buffer, void, undefined> {
  if (!progress.isShown) return yield* archive
  const { Parser } = await import('tar')
  const parser = new Parser({
    onReadEntry(entry) {
      if (entry.type !== 'File' && entry.type !== 'OldFile') return entry.resume()
      entry.on('end', progress.addFile)
      entry.on('data', ({ length }) => progress.addBytes(length))
    },
  })
  // The reader of the archive reports a malformed one.
  parser.on('error', () => undefined)
  for await (const chunk of archive) {
    // A copy: the parser may keep it, and the memory of a chunk may be reused.
    parser.write(Buffer.from(chunk))
    yield chunk
  }
}
