// What a source contains: the interface between sources and destinations of a copy.
import type { Readable } from 'node:stream'

export type FileContent = {
  type: 'file'
  /** The name inside a destination directory. All paths of a copy: see path-bytes.ts. */
  name: string
  /** The size in bytes; null if it is not known before the end. */
  size: number | null
  /** Permission bits; null: those of the existing file, or the default. */
  mode: number | null
  /** Modification time in seconds since the epoch; null: now. */
  mtime: number | null
  /** Each call starts at the first byte. Errors of the stream are CliErrors. */
  open(): Promise<Readable>
}

export type DirectoryContent = {
  type: 'directory'
  /** The name inside an existing destination directory; '' copies the contents into the destination. */
  name: string
  /** Permission bits; null if unknown. */
  mode: number | null
  /** Modification time in seconds since the epoch; null if unknown. */
  mtime: number | null
  /** A tar archive with one top-level directory. Errors are CliErrors. */
  archive: AsyncIterable<Uint8Array>
}

export type Content = FileContent | DirectoryContent

/** Total of the files of a source; null if unknown. */
export type Totals = { files: number; bytes: number }
