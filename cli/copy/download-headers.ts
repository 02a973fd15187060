// Parses the response headers of a download (spec §4.15).
import type { TransportResponse } from '../../client/http/transport.ts'
import {
  CONTENT_DIRECTORY,
  DOWNLOAD_CONTENT_HEADER,
  DOWNLOAD_COUNT_HEADERS,
  DOWNLOAD_MODE_HEADER,
  DOWNLOAD_MTIME_HEADER,
  DOWNLOAD_PATH_HEADER,
} from '../../shared/download-headers.ts'
import { FILE_MTIME_PATTERN } from '../../shared/field-values.ts'

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
export function parseDownloadHeaders({ headers }: TransportResponse): DownloadHeaders {
  const match = (name: string, pattern: RegExp): string | null => {
    const value = headers.get(name)
    return value !== null && pattern.test(value) ? value : null
  }
  const matchNumber = (name: string, pattern = /^\d{1,15}$/): number | null => {
    const value = match(name, pattern)
    return value === null ? null : Number(value)
  }
  const path = headers.get(DOWNLOAD_PATH_HEADER)
  const mode = match(DOWNLOAD_MODE_HEADER, /^[0-7]{4}$/)
  return {
    isDirectory: headers.get(DOWNLOAD_CONTENT_HEADER) === CONTENT_DIRECTORY,
    path: path === null ? null : decodePath(path),
    mode: mode === null ? null : Number.parseInt(mode, 8) & 0o777,
    mtime: matchNumber(DOWNLOAD_MTIME_HEADER, FILE_MTIME_PATTERN),
    files: matchNumber(DOWNLOAD_COUNT_HEADERS.files),
    bytes: matchNumber(DOWNLOAD_COUNT_HEADERS.bytes),
    skipped: matchNumber(DOWNLOAD_COUNT_HEADERS.skipped),
    entityTag: headers.get('etag'),
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
