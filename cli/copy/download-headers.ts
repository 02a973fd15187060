// Response headers of a download (spec §4.15). Copied from shared/api/files.ts: importing it loads zod (30 ms).
import type { IncomingMessage } from 'node:http'

export const DOWNLOAD_PATH_HEADER = 'x-service-path'
export const DOWNLOAD_CONTENT_HEADER = 'x-service-content'
/** The value of X-Service-Content for a directory, which is sent as a tar archive. */
export const CONTENT_DIRECTORY = 'directory'

export type DownloadHeaders = {
  isDirectory: boolean
  /** The real path on the box, if the response has it. */
  path: string | null
  /** Permission bits, without set-user-ID and similar bits. */
  mode: number | null
  /** Seconds since the epoch. */
  mtime: number | null
  /** The content of a directory before the transfer. */
  files: number | null
  bytes: number | null
  skipped: number | null
  entityTag: string | null
}

/** A malformed header counts as missing. */
export function parseDownloadHeaders({ headers }: IncomingMessage): DownloadHeaders {
  const match = (name: string, pattern: RegExp): string | null => {
    const value = headers[name]
    return typeof value === 'string' && pattern.test(value) ? value : null
  }
  const matchNumber = (name: string, pattern = /^\d{1,15}$/): number | null => {
    const value = match(name, pattern)
    return value === null ? null : Number(value)
  }
  const path = headers[DOWNLOAD_PATH_HEADER]
  const mode = match('x-service-mode', /^[0-7]{4}$/)
  return {
    isDirectory: headers[DOWNLOAD_CONTENT_HEADER] === CONTENT_DIRECTORY,
    path: typeof path === 'string' ? decodePath(path) : null,
    mode: mode === null ? null : Number.parseInt(mode, 8) & 0o777,
    mtime: matchNumber('x-service-mtime', /^\d{1,11}(\.\d{1,9})?$/),
    files: matchNumber('x-service-files'),
    bytes: matchNumber('x-service-bytes'),
    skipped: matchNumber('x-service-skipped'),
    entityTag: headers.etag ?? null,
  }
}

/** Non-ASCII paths are percent-encoded. */
function decodePath(header: string): string {
  try {
    return decodeURIComponent(header)
  } catch {
    return header
  }
}
