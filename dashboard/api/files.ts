// Requests for the files of a box.
import { BoxwoodError } from '../../client/http/errors.ts'
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
export function createFiles(client: Pick<BoxClient, 'send'>) {
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
    upload(path: string, body: File, { signal, onProgress }: UploadOptions): Promise<FileUploaded> {
      const mtime = String(body.lastModified / 1000)
      const input = { body, isRaw: true, onProgress }
      return client.send<FileUploaded>('PUT', withPath('upload', path, { mtime }), input, { signal })
    },
  }
}
