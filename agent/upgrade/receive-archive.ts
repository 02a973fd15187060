// Writes the archive of a build to a file, and checks its size and its SHA-256.
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { AgentBuild } from '../../shared/agent-build.ts'

/** @throws Error when the content is not the archive of the build, also as soon as it is too long */
export async function receiveArchive(
  content: Readable,
  path: string,
  { size, sha256 }: Pick<AgentBuild, 'size' | 'sha256'>,
  signal?: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256')
  let received = 0
  async function* check(chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      received += chunk.length
      if (received > size) throw new Error(`The archive has more than the announced ${size} bytes.`)
      hash.update(chunk)
      yield chunk
    }
  }
  await pipeline(content, check, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal })
  if (received !== size) throw new Error(`The archive has ${received} bytes instead of ${size}.`)
  if (hash.digest('hex') !== sha256) throw new Error('The SHA-256 of the archive is wrong.')
}
