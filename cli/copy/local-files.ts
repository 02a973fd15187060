// Files on this machine: error messages, and temporary names for atomic copies.
import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { decodePath, toFsPath } from './path-bytes.ts'

/** Returns null if `path` does not exist. Follows symbolic links. */
export async function statIfExists(path: string): Promise<Stats | null> {
  return nullIfMissing(stat(toFsPath(path)))
}

export const getRealPath = async (path: string): Promise<string> =>
  decodePath(await realpath(toFsPath(path), { encoding: 'buffer' }))

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code

/** Null instead of ENOENT. @throws CliError for other errors */
export async function nullIfMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw toLocalFileError(error)
  }
}

/**
 * Turns a file-system error into a CliError; returns other errors unchanged.
 * @param target the file being written: Node's error has no path when writing to an open file fails
 */
export function toLocalFileError(error: unknown, target?: string): unknown {
  const isRead = isSystemError(error) && error.syscall === 'read'
  return toFileError(error, isRead ? undefined : target)
}

/** @param path the file being read */
export const toReadError = (error: unknown, path: string): unknown => toFileError(error, path)

function toFileError(error: unknown, fallbackPath: string | undefined): unknown {
  if (error instanceof CliError || !isSystemError(error)) return error
  const isMissing = error.code === 'ENOENT' || error.code === 'ENOTDIR'
  const exitCode = isMissing ? EXIT.notFound : EXIT.failed
  const path = error.path?.toString() ?? fallbackPath
  return new CliError(exitCode, describeFileError(error, path), { cause: error })
}

const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error

/** `path: reason`, such as `secret: permission denied (this machine).` */
function describeFileError({ message }: NodeJS.ErrnoException, path: string | undefined): string {
  const reason = /^\w+: (.*?)(?:,|$)/.exec(message)?.[1] ?? message
  // "this machine": the same error can occur on the box.
  return `${path === undefined ? '' : `${sanitize(hideTempName(path))}: `}${reason} (this machine).`
}

/** Passes on the bytes of a source; an error while reading it becomes a CliError that names `path`. */
export async function* withReadErrors(
  source: AsyncIterable<Uint8Array>,
  path: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* source
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new CliError(EXIT.failed, describeFileError(error, error.path ?? path), { cause: error })
  }
}

const TEMP_NAME_PATTERN = /^\.box-cp-\w+$/

export const createTempName = (): string => `.box-cp-${randomBytes(8).toString('hex')}`

/** Replaces the path of a temporary file, which the user did not choose, by its directory. */
export function hideTempName(path: string): string {
  const segments = path.split('/')
  const index = segments.findIndex((segment) => TEMP_NAME_PATTERN.test(segment))
  if (index < 0) return path
  return index === 0 ? './' : `${segments.slice(0, index).join('/')}/`
}

/**
 * Calls `action` with an unused path in `parentDir`, then removes what is at that path. The removal retries, in case a
 * stream that was aborted still writes there.
 */
export async function withTempPath<T>(parentDir: string, action: (path: string) => Promise<T>): Promise<T> {
  const path = join(parentDir, createTempName())
  try {
    return await action(path)
  } finally {
    await rm(toFsPath(path) as string, { recursive: true, force: true, maxRetries: 5 })
  }
}
