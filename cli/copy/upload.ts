// From here to a box: a file as it is, a folder as a tar that is unpacked there.
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { FileUploaded } from '../../shared/api/files.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Edge } from '../client.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { type Body, readAll } from '../http.ts'
import { printable } from '../output.ts'
import { localName, meansContents, meansFolder } from './ends.ts'
import { localFailure, look } from './local.ts'
import { metered } from './progress.ts'
import { uploadFolder } from './upload-folder.ts'

const CHUNK_BYTES = 512 * 1024

export type Copied = { path: string; size: number }

/** Copies the file or folder at `source` to `path` of the box. */
export async function upload(edge: Edge, source: string, path: string): Promise<Copied> {
  const stat = await look(source)
  if (stat === null) throw new Failure(EXIT.notFound, `${source}: no such file or folder here.`)
  if (stat.isDirectory()) {
    return uploadFolder(edge, source, path, meansContents(source) ? '' : localName(source))
  }
  if (stat.size > LIMITS.transferBytes) throw tooLarge(source)
  const length = stat.isFile() ? stat.size : null
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  const body = () => fileBody(source, length)
  const under = (folder: string) => `${folder.replace(/\/*$/, '')}/${localName(source)}`
  if (meansFolder(path)) return put(edge, path === '' ? localName(source) : under(path), mode, body)
  try {
    return await put(edge, path, mode, body)
  } catch (error) {
    // The box says that it is a folder: then the file goes into it, as for cp.
    if (!(error instanceof Failure) || error.code !== 'invalid_path') throw error
    return put(edge, under(path), mode, body)
  }
}

export function tooLarge(source: string): Failure {
  return new Failure(EXIT.refused, `${source} is larger than 1 GiB, the most that one transfer carries.`)
}

function fileBody(source: string, length: number | null): Body {
  if (length === 0) return Buffer.alloc(0)
  const bytes = length === null ? createReadStream(source) : exactly(source, length)
  const name = printable(localName(source))
  return { stream: Readable.from(metered(bytes, name, length), { objectMode: false }), length }
}

/** A file that grows meanwhile is sent at the size it had; one that shrinks is an error. */
async function* exactly(source: string, length: number): AsyncGenerator<Buffer, void, undefined> {
  let sent = 0
  for await (const chunk of createReadStream(source, { end: length - 1, highWaterMark: CHUNK_BYTES })) {
    sent += chunk.length
    yield chunk
  }
  if (sent < length) throw new Failure(EXIT.refused, `${source} became shorter while it was sent.`)
}

/** What comes on stdin, of whatever length. */
export async function uploadStdin(edge: Edge, path: string): Promise<Copied> {
  if (meansFolder(path))
    throw new Failure(EXIT.usage, 'stdin has no name: say which file on the box it becomes.')
  return put(edge, path, null, () => {
    if (process.stdin.readableDidRead)
      throw new Failure(
        EXIT.refused,
        'The coordinator asked to come back later, and stdin cannot be read again.',
      )
    return { stream: process.stdin, length: null }
  })
}

export async function put(edge: Edge, path: string, mode: string | null, body: () => Body): Promise<Copied> {
  const query = { path, ...(mode !== null && { mode }) }
  try {
    const response = await edge.stream('PUT', '/upload', query, body)
    const { path: real, size } = JSON.parse((await readAll(response)).toString()) as FileUploaded
    return { path: real, size }
  } catch (error) {
    throw localFailure(error)
  }
}
