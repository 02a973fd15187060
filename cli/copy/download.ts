// From a box to here: a file or a folder, under its final name only once it is whole.
import { createWriteStream, type Stats } from 'node:fs'
import { chmod, realpath, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CONTENT_DIRECTORY, CONTENT_HEADER, PATH_HEADER } from '../answer-headers.ts'
import type { Edge } from '../client.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { printable } from '../output.ts'
import { boxName, meansContents } from './ends.ts'
import { localFailure, look, withTemporary } from './local.ts'
import { metered } from './progress.ts'
import { receiveFolder } from './receive-folder.ts'

/** `from` is the real path on the box, `to` the one here, `size` the bytes received. */
export type Fetched = { from: string; to: string; size: number }

/** Copies `path` of the box to `target` here, into it when that is a folder. */
export async function download(
  edge: Edge,
  path: string,
  target: string,
  signal: AbortSignal,
): Promise<Fetched> {
  const { body, from, isFolder, length } = await open(edge, path)
  let size = 0
  const count = async function* (): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of body) {
      size += chunk.length
      yield chunk
    }
  }
  try {
    const name = boxName(path, from)
    const there = await look(target)
    const into = there?.isDirectory() && !(isFolder && meansContents(path))
    const to = into ? join(target, name) : target
    const receive = isFolder ? receiveFolder : receiveFile
    await receive(metered(count(), printable(name), length), to, into ? await look(to) : there)
    return { from, to, size }
  } catch (error) {
    throw signal.aborted ? signal.reason : localFailure(brokenOff(error))
  } finally {
    body.destroy()
  }
}

/** To stdout; a folder as its tar. */
export async function downloadToStdout(edge: Edge, path: string, signal: AbortSignal): Promise<void> {
  const { body } = await open(edge, path)
  await pipeline(body, process.stdout, { signal, end: false }).catch((error) => {
    throw signal.aborted ? signal.reason : brokenOff(error)
  })
}

async function open(edge: Edge, path: string) {
  const body = await edge.stream('GET', '/download', { path: path === '' ? '~' : path })
  const header = body.headers[PATH_HEADER]
  const isFolder = body.headers[CONTENT_HEADER] === CONTENT_DIRECTORY
  const length = isFolder ? null : Number(body.headers['content-length'])
  return { body, from: decodePath(typeof header === 'string' ? header : path), isFolder, length }
}

/** What is not ASCII comes percent-encoded. */
function decodePath(header: string): string {
  try {
    return decodeURIComponent(header)
  } catch {
    return header
  }
}

async function receiveFile(bytes: AsyncIterable<Buffer>, path: string, there: Stats | null): Promise<void> {
  if (there?.isDirectory()) throw new Failure(EXIT.refused, `${printable(path)} is a folder here.`)
  if (there === null && path.endsWith('/'))
    throw new Failure(EXIT.notFound, `${printable(path)}: there is no such folder here.`)
  // A device or a pipe is written to; nothing can take its place.
  if (there !== null && !there.isFile()) return pipeline(bytes, createWriteStream(path))
  const final = there === null ? path : await realpath(path)
  await withTemporary(dirname(final), async (temporary) => {
    await pipeline(bytes, createWriteStream(temporary, { flags: 'wx', flush: true }))
    if (there !== null) await chmod(temporary, there.mode & 0o7777)
    await rename(temporary, final)
  })
}

/** A body that stops before its end says so in Node's words, which say nothing to a person. */
function brokenOff(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || 'path' in error) return error
  if (error.code !== 'ECONNRESET' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') return error
  return new Failure(EXIT.unreachable, 'The transfer broke off before its end. Nothing was changed here.', {
    cause: error,
  })
}
