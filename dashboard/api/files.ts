// Requests for the files of a box.
import { BoxwoodError, createError, createResponseError } from '../../client/http/errors.ts'
import type {
  FileEntry,
  FileList,
  FileMoved,
  FileRead,
  FileStat,
  FileUploaded,
  FileWritten,
} from '../../shared/api/files.ts'
import type { BoxClient } from './box-client.ts'

export type UploadOptions = { signal: AbortSignal; onProgress(bytes: number): void }

export type Files = ReturnType<typeof createFiles>

/** The methods reject with BoxwoodError. */
export function createFiles(client: Pick<BoxClient, 'root' | 'getTicket' | 'discardTicket' | 'send'>) {
  const withPath = (route: string, path: string, params: Record<string, string> = {}) =>
    `${route}?${new URLSearchParams({ path, ...params })}`
  const stat = (path: string) => client.send<FileStat>('GET', withPath('files/stat', path))
  return {
    list: (path: string, cursor: string | null = null) =>
      client.send<FileList>('GET', withPath('files/list', path, cursor === null ? {} : { cursor })),
    stat,
    /** Null: there is no such file. */
    async find(path: string): Promise<FileEntry | null> {
      try {
        return (await stat(path)).entry
      } catch (error) {
        if (error instanceof BoxwoodError && error.code === 'not_found') return null
        throw error
      }
    },
    read: (path: string) => client.send<FileRead>('GET', withPath('files', path)),
    writeText: (path: string, content: string) =>
      client.send<FileWritten>('PUT', 'files', { body: { path, content, encoding: 'utf8' } }),
    makeDirectory: (path: string, parents = false) =>
      client.send('POST', 'files/mkdir', { body: { path, parents } }),
    move: (from: string, to: string, overwrite: boolean) =>
      client.send<FileMoved>('POST', 'files/move', { body: { from, to, overwrite } }),
    remove: (path: string, isRecursive: boolean) =>
      client.send('DELETE', withPath('files', path, isRecursive ? { recursive: '1' } : {})),
    /** Rejects with the reason of an aborted signal. */
    async upload(path: string, body: File, options: UploadOptions): Promise<FileUploaded> {
      const mtime = String(body.lastModified / 1000)
      const url = new URL(withPath('upload', path, { mtime }), client.root)
      const ticket = await client.getTicket()
      try {
        return await sendBody(url, ticket, body, options)
      } catch (error) {
        // The session that has created the ticket may have ended.
        if (!(error instanceof BoxwoodError) || error.status !== 401) throw error
        client.discardTicket(ticket)
        return sendBody(url, await client.getTicket(), body, options)
      }
    },
  }
}

/** XMLHttpRequest, because fetch() does not report how much of a body was sent. */
function sendBody(url: URL, ticket: string, body: Blob, { signal, onProgress }: UploadOptions) {
  return new Promise<FileUploaded>((resolve, reject) => {
    signal.throwIfAborted()
    const request = new XMLHttpRequest()
    request.open('PUT', url)
    request.setRequestHeader('authorization', `Bearer ${ticket}`)
    request.setRequestHeader('content-type', 'application/octet-stream')
    request.upload.onprogress = ({ loaded }) => onProgress(loaded)
    request.onload = () => {
      const parsed = parseJson(request.responseText)
      if (request.status === 200 && parsed !== undefined) resolve(parsed as FileUploaded)
      else
        reject(
          createResponseError(parsed, request.status, { get: (name) => request.getResponseHeader(name) }),
        )
    }
    request.onerror = () =>
      reject(
        createError({
          code: 'no_response',
          message: 'The upload was interrupted. The file is unchanged.',
          status: 0,
        }),
      )
    request.onabort = () => reject(signal.reason)
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(body)
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
