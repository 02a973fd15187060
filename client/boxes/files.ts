// Files and directories of a box.
import type { FileEntry } from '../generated/types.ts'
import { type CallOptions, readText } from '../http/calls.ts'
import { BoxwoodError, toLostError } from '../http/errors.ts'
import { type RequestBody, toReadableStream } from '../http/transport.ts'
import type { Context } from './context.ts'
import { readPages } from './pages.ts'
import { requireField } from './require-field.ts'

export type WriteOptions = CallOptions & {
  /** Octal, such as `755`. Default: that of the file, or 644. */
  mode?: string
  /** When the file was changed, in seconds since the epoch. Default: now. */
  mtime?: number
}

/** Relative paths and those with `~/` resolve under the home directory of the box. */
export class Files {
  readonly #context: Context
  readonly #boxId: string

  constructor(context: Context, boxId: string) {
    this.#context = context
    this.#boxId = boxId
  }

  /** The content of a file as text. */
  async read(path: string, options?: CallOptions): Promise<string> {
    return readBody(readText(await this.#download(path, options)), options)
  }

  async readBytes(path: string, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    const stream = await this.download(path, options)
    return new Uint8Array(await readBody(new Response(stream).arrayBuffer(), options))
  }

  /** A file of up to 1 GiB, or a directory as a tar stream. Nothing is buffered: it is read as fast as its reader reads. */
  async download(path: string, options?: CallOptions): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const { body } = await this.#download(path, options)
    return body === null ? new Blob([]).stream() : toReadableStream(body)
  }

  #download(path: string, options?: CallOptions) {
    return this.#context.routes.files.download(this.#boxId, { path }, options)
  }

  /** Replaces or creates a file of up to 1 GiB, atomically. A stream is not buffered. */
  write(path: string, content: RequestBody, { mode, mtime, ...options }: WriteOptions = {}) {
    const query = {
      path,
      ...(mode !== undefined && { mode }),
      ...(mtime !== undefined && { mtime: String(mtime) }),
    }
    return this.#context.routes.files.upload(this.#boxId, query, content, options)
  }

  /** The entries of a directory. */
  list(path: string, options?: CallOptions): AsyncGenerator<FileEntry, void, undefined> {
    return readPages(async (cursor) => {
      const query = { path, ...(cursor !== undefined && { cursor }) }
      const page = await this.#context.routes.files.list(this.#boxId, query, options)
      return { items: requireField(page, 'entries'), next: page.nextCursor }
    })
  }

  /** The type, the size and the other attributes. */
  async stat(path: string, options?: CallOptions): Promise<FileEntry> {
    return requireField(await this.#context.routes.files.stat(this.#boxId, { path }, options), 'entry')
  }

  /** Creates a directory, and those above it. A directory that exists is accepted. */
  makeDirectory(path: string, options?: CallOptions) {
    return this.#context.routes.files.makeDirectory(this.#boxId, { path, parents: true }, options)
  }

  move(from: string, to: string, options?: CallOptions) {
    return this.#context.routes.files.move(this.#boxId, { from, to }, options)
  }

  /** Removes a file, or with `recursive` a directory with its contents. */
  remove(path: string, { recursive, ...options }: CallOptions & { recursive?: boolean } = {}) {
    const query = { path, ...(recursive !== undefined && { recursive }) }
    return this.#context.routes.files.remove(this.#boxId, query, options)
  }
}

/** The error of a body that is cut says nothing about the request. */
async function readBody<T>(reading: Promise<T>, options: CallOptions | undefined): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (options?.signal?.aborted || error instanceof BoxwoodError) throw error
    throw toLostError(error as Error)
  }
}
