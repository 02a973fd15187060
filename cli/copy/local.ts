// Paths here: what is there, and the temporary names that make a copy whole or nothing.
import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { lstat, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EXIT, Failure } from '../exit-codes.ts'

/** Null for what does not exist; links are followed. */
export async function look(path: string): Promise<Stats | null> {
  return existing(stat(path))
}

async function existing(asked: Promise<Stats>): Promise<Stats | null> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw localFailure(error)
  }
}

/** What the system says about a path here, as a sentence. */
export function localFailure(error: unknown): unknown {
  if (error instanceof Failure || !(error instanceof Error) || !('syscall' in error)) return error
  const path = 'path' in error ? `${error.path}: ` : ''
  const words = /^\w+: (.*?)(?:,|$)/.exec(error.message)?.[1] ?? error.message
  const missing = 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
  return new Failure(missing ? EXIT.notFound : EXIT.refused, `${path}${words}.`, { cause: error })
}

export const temporaryName = (): string => `.box-cp-${randomBytes(8).toString('hex')}`

/** Runs `work` with a name in `folder` that is free, and removes whatever is left under it, even if something still
 * writes there. */
export async function withTemporary<T>(folder: string, work: (path: string) => Promise<T>): Promise<T> {
  const path = join(folder, temporaryName())
  try {
    return await work(path)
  } finally {
    await rm(path, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Refuses a merge in which a folder and something else have the same name, before anything is moved. */
export async function checkMerge(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const target = join(to, entry.name)
    const there = await existing(lstat(target))
    if (there === null) continue
    if (entry.isDirectory() !== there.isDirectory()) {
      const [a, b] = entry.isDirectory() ? ['a folder', 'not one here'] : ['not a folder', 'one here']
      throw new Failure(EXIT.refused, `${target}: it is ${a} on the box, but ${b}. Nothing was changed.`)
    }
    if (entry.isDirectory()) await checkMerge(join(from, entry.name), target)
  }
}

/** Moves what is in `from` into `to`, folder by folder; each file replaces the one of its name at once. */
export async function merge(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory() && (await existing(lstat(target))) !== null) await merge(source, target)
    else await rename(source, target)
  }
}
