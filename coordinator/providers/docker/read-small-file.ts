// Reads a small file of a container, which may be a helper, from the engine.
import { buffer } from 'node:stream/consumers'
import { TarReader } from '../container/tar-entries.ts'
import { ignoreStatus } from '../engine-http/errors.ts'
import type { Engine } from './engine.ts'

/** Box users control the files of their volumes. Returns null when there is no such file, and when it is larger than the limit. */
export async function readSmallFile(
  { http }: Engine,
  container: string,
  path: string,
  maxBytes: number,
): Promise<string | null> {
  const response = await http
    .stream({ method: 'GET', path: `/containers/${container}/archive`, query: { path } })
    .catch(ignoreStatus(404))
  if (response === undefined) return null
  const { body } = response
  try {
    const reader = new TarReader(body)
    const entry = await reader.next()
    if (entry?.type !== 'file' || entry.size > maxBytes) return null
    return (await buffer(reader.readContent())).toString('utf8')
  } finally {
    body.on('error', () => {}).destroy()
  }
}
