// Passes bytes on unchanged and counts them for the progress.
import type { Progress } from './progress.ts'

export async function* trackFile(
  source: AsyncIterable<Uint8Array>,
  progress: Progress,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of source) {
    progress.addBytes(chunk.length)
    yield chunk
  }
  progress.addFile()
}

/** Counts the files of a tar archive and the bytes of their content, without headers and padding. */
export async function* trackArchive(
  archive: AsyncIterable<Uint8Array>,
  progress: Progress,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!progress.isShown) return yield* archive
  const { extract } = await import('tar-stream')
  const parser = extract()
  parser.on('entry', ({ type }, content, next) => {
    const isFile = type === 'file'
    if (isFile) content.on('data', (bytes) => progress.addBytes((bytes as Buffer).length))
    content.on('end', () => {
      if (isFile) progress.addFile()
      next()
    })
    content.resume()
  })
  // The reader of the archive reports a malformed one.
  parser.on('error', () => undefined)
  for await (const chunk of archive) {
    // A copy: the parser may keep it, and the memory of a chunk may be reused.
    parser.write(Buffer.from(chunk))
    yield chunk
  }
}
