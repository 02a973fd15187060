// Reads and changes files of an instance, which need not run. Incus does not follow links out of the instance.
import type { Readable } from 'node:stream'
import pLimit from 'p-limit'
import { EngineStatusError, ignoreStatus } from '../engine-http/errors.ts'
import type { IncusClient } from './client.ts'

export type FileType = 'file' | 'directory' | 'symlink'

/** A reader that a FIFO or a stopped engine blocks. */
const FILE_TIMEOUT_MS = 10_000
const CONCURRENT_REMOVALS = 8

const getPath = (instance: string): string => `/instances/${instance}/files`

export class InstanceFiles {
  readonly #client: IncusClient
  readonly #instance: string

  constructor(client: IncusClient, instance: string) {
    this.#client = client
    this.#instance = instance
  }

  /** Replaces the file. Only root of the instance can read it. */
  async write(path: string, content: string): Promise<void> {
    await this.#client.call('POST', getPath(this.#instance), {
      query: { path },
      content: Buffer.from(content),
      headers: {
        'content-type': 'application/octet-stream',
        'x-incus-type': 'file',
        'x-incus-mode': '0600',
        'x-incus-uid': '0',
        'x-incus-gid': '0',
        'x-incus-write': 'overwrite',
      },
      timeoutMs: FILE_TIMEOUT_MS,
    })
  }

  /** Returns null when nothing has this path. */
  async stat(path: string): Promise<{ type: FileType; uid: number } | null> {
    const response = await this.#client
      .stream('HEAD', getPath(this.#instance), { query: { path }, timeoutMs: FILE_TIMEOUT_MS })
      .catch(ignoreStatus(404))
    if (response === undefined) return null
    response.body.resume()
    return readHeaders(response.headers)
  }

  /** Returns the names in a directory. */
  async list(path: string): Promise<string[]> {
    return (await this.#client.get<string[] | null>(getPath(this.#instance), { path })) ?? []
  }

  /** Returns at most `maxBytes` from the start of a file. */
  async read(path: string, maxBytes: number): Promise<Buffer> {
    const { body } = await this.#client.stream('GET', getPath(this.#instance), {
      query: { path },
      timeoutMs: FILE_TIMEOUT_MS,
    })
    return await readStart(body, maxBytes)
  }

  /** Removes a file, a link, or a directory with everything in it. No-op when absent. */
  async remove(path: string): Promise<void> {
    const limit = pLimit(CONCURRENT_REMOVALS)
    const remove = async (entry: string): Promise<void> => {
      if (await limit(() => this.#tryRemove(entry))) return
      const names = await limit(() => this.list(entry))
      await Promise.all(names.map((name) => remove(`${entry}/${name}`)))
      await limit(() => this.#delete(entry))
    }
    await remove(path)
  }

  /** Returns false for a directory with content. */
  async #tryRemove(path: string): Promise<boolean> {
    try {
      await this.#delete(path)
      return true
    } catch (error) {
      // Incus does not follow a link, nor does it fail to remove one.
      if (error instanceof EngineStatusError && (await this.stat(path))?.type === 'directory') return false
      throw error
    }
  }

  async #delete(path: string): Promise<void> {
    const options = { query: { path }, timeoutMs: FILE_TIMEOUT_MS }
    await this.#client.call('DELETE', getPath(this.#instance), options).catch(ignoreStatus(404))
  }
}

function readHeaders(headers: Record<string, string | string[] | undefined>): {
  type: FileType
  uid: number
} {
  const type = headers['x-incus-type']
  return {
    type: type === 'directory' || type === 'symlink' ? type : 'file',
    uid: Number(headers['x-incus-uid'] ?? -1),
  }
}

async function readStart(body: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    // Leaving the loop destroys the body.
    if (length >= maxBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}
