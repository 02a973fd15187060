// Writes the entries of a tar archive below an empty directory. The box is untrusted: nothing outside the directory is written or
// linked to.
import {
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { hasCode } from './local-files.ts'
import { toFsPath } from './path-bytes.ts'
import { getParent } from './paths.ts'
import type { Progress } from './progress.ts'
import { type ArchiveEntry, readEntries } from './tar-entries.ts'

/** A directory to whose path, relative to the top directory, the attributes belong. They are set when it has its content. */
export type ExtractedDirectory = { path: string; mode: number; mtime: number | null }

/** `top` is the path of the top directory of the archive below `directory`. Parents precede their children. */
export type Extracted = { top: string; directories: ExtractedDirectory[] }

/** Synchronous calls: small files take a fraction of the time. @throws CliError and errors of the file system */
export async function extractEntries(
  archive: AsyncIterable<Uint8Array>,
  directory: string,
  progress: Progress,
): Promise<Extracted> {
  const extraction = new Extraction(directory, progress)
  for await (const entry of readEntries(archive)) await extraction.add(entry)
  return extraction.finish()
}

type Attributes = Omit<ExtractedDirectory, 'path'>

class Extraction {
  readonly #directory: string
  readonly #progress: Progress
  readonly #umask = process.umask()
  #top: string | null = null
  /** By their path below #directory, '' for itself. A parent of an entry is one of them, and so never a symbolic link. */
  readonly #directories = new Map<string, Attributes | null>([['', null]])
  /** Created at the end, so that no entry is written through one. */
  readonly #symlinks = new Map<string, { target: string; mtime: number }>()
  readonly #skipped = new Set<string>()

  constructor(directory: string, progress: Progress) {
    this.#directory = directory
    this.#progress = progress
  }

  async add(entry: ArchiveEntry): Promise<void> {
    const path = normalizeName(entry.name)
    if (this.#top === null) {
      if (entry.type !== 'directory')
        throw new CliError(EXIT.failed, 'The box sent an archive without a top-level directory.')
      this.#top = path
    } else if (!isBelow(path, this.#top)) throw createOutsideError(entry.name)
    switch (entry.type) {
      case 'directory': {
        const mode = entry.mode & 0o777 & ~this.#umask
        return this.#addDirectory(path, { mode, mtime: entry.mtime })
      }
      case 'file':
      case 'contiguous-file':
        return this.#addFile(path, entry)
      case 'symlink':
        return this.#addSymlink(path, entry)
      case 'link':
        return this.#addHardLink(path, entry)
      case 'fifo':
      case 'block-device':
      case 'character-device':
        // The agent omits them, the tar of a box does not.
        this.#skipped.add(path)
        return this.#progress.print(`${sanitize(entry.name)}: skipped, not a regular file.`)
      default:
        throw new CliError(
          EXIT.failed,
          `The box sent an entry of an unknown type: ${sanitize(entry.name)}. Copy the directory without it.`,
        )
    }
  }

  finish(): Extracted {
    const top = this.#top
    if (top === null)
      throw new CliError(EXIT.failed, 'The box sent an archive without a top-level directory.')
    for (const [path, { target, mtime }] of this.#symlinks) {
      const fsPath = this.#create(path, (to) => symlinkSync(toFsPath(target), to))
      lutimesSync(fsPath, new Date(), mtime)
    }
    const directories: ExtractedDirectory[] = []
    for (const [path, attributes] of this.#directories)
      if (isBelow(path, top))
        directories.push({
          path: top === '' ? path : path.slice(top.length + 1),
          ...(attributes ?? { mode: 0o777 & ~this.#umask, mtime: null }),
        })
    return { top, directories }
  }

  #addDirectory(path: string, attributes: Attributes | null): void {
    if (!this.#directories.has(path)) {
      this.#create(path, (to) => mkdirSync(to, 0o700))
      this.#directories.set(path, attributes)
    } else if (attributes !== null) this.#directories.set(path, attributes)
  }

  async #addFile(path: string, { mode, mtime, content }: ArchiveEntry): Promise<void> {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    let fd = -1
    this.#create(path, (to) => {
      fd = openSync(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    })
    try {
      for await (const chunk of content) {
        for (let written = 0; written < chunk.length; ) written += writeSync(fd, chunk, written)
        this.#progress.addBytes(chunk.length)
      }
      fchmodSync(fd, mode & 0o777 & ~this.#umask)
      futimesSync(fd, new Date(), mtime)
    } finally {
      closeSync(fd)
    }
    this.#progress.addFile()
  }

  #addSymlink(path: string, { target, mtime }: ArchiveEntry): void {
    if (this.#symlinks.has(path)) throw createDuplicateError(path)
    this.#symlinks.set(path, { target, mtime })
  }

  /** `target` is the name of an earlier entry. Until the end, only directories and files of this archive exist. */
  #addHardLink(path: string, { name, target: targetName }: ArchiveEntry): void {
    const target = normalizeName(targetName)
    const symlink = this.#symlinks.get(target)
    if (symlink !== undefined) {
      if (this.#symlinks.has(path)) throw createDuplicateError(path)
      this.#symlinks.set(path, symlink)
    } else if (this.#skipped.has(target)) this.#skipped.add(path)
    else {
      if (!this.#directories.has(getParent(target)) || this.#directories.has(target))
        throw createLinkError(name, targetName)
      this.#create(path, (to) => {
        try {
          linkSync(toFsPath(join(this.#directory, target)), to)
        } catch (error) {
          throw hasCode(error, 'ENOENT') ? createLinkError(name, targetName) : error
        }
      })
    }
  }

  /** Creates the parents, then the entry, which must be new. Returns the path for calls of the file system. */
  #create(path: string, action: (to: string | Buffer) => void): string | Buffer {
    if (path !== '' && !this.#directories.has(getParent(path))) this.#addDirectory(getParent(path), null)
    const to = toFsPath(join(this.#directory, path))
    try {
      action(to)
    } catch (error) {
      throw hasCode(error, 'EEXIST') ? createDuplicateError(path) : error
    }
    return to
  }
}

const isBelow = (path: string, top: string): boolean =>
  top === '' || path === top || path.startsWith(`${top}/`)

/** Returns a relative path without `.` and empty segments. @throws CliError for a name outside the directory */
function normalizeName(name: string): string {
  const segments = name.split('/')
  if (name.startsWith('/') || segments.includes('..')) throw createOutsideError(name)
  return segments.filter((segment) => segment !== '' && segment !== '.').join('/')
}

const createOutsideError = (name: string): CliError =>
  new CliError(
    EXIT.failed,
    `The box sent an archive with an entry outside the copied directory: ${sanitize(name)}.`,
  )

const createDuplicateError = (path: string): CliError =>
  new CliError(
    EXIT.failed,
    `The box sent two entries that have the same name on this machine: ${sanitize(path)}. Copy one of them separately.`,
  )

const createLinkError = (name: string, target: string): CliError =>
  new CliError(
    EXIT.failed,
    `The box sent a link to a file that is not in the archive: ${sanitize(name)}, to ${sanitize(target)}.`,
  )
