// A tar from a box, unpacked so that nothing in it reaches outside: the box is not trusted.
import { once } from 'node:events'
import type { Stats } from 'node:fs'
import { chmod, mkdir, realpath, rename, symlink } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { ReadEntry, Unpack } from 'tar'
import { EXIT, Failure } from '../exit-codes.ts'
import { printable } from '../output.ts'
import { checkMerge, look, merge, withTemporary } from './local.ts'

/**
 * Unpacks beside `target` and renames: `target` appears whole or not at all. When it is a folder already, every file
 * in it is replaced by itself.
 */
export async function receiveFolder(
  bytes: AsyncIterable<Buffer>,
  target: string,
  there: Stats | null,
): Promise<void> {
  if (there !== null && !there.isDirectory())
    throw new Failure(EXIT.refused, `${printable(target)} is not a folder, but the source is one.`)
  const final = target.replace(/(?<=.)\/+$/, '')
  // Within the target when it exists: it may be a file system of its own.
  await withTemporary(there === null ? dirname(final) : final, async (temporary) => {
    await mkdir(temporary, { mode: 0o700 })
    const { top, modes } = await unpack(bytes, temporary)
    const folders = modes.map(({ path, mode }) => ({ path: join(final, path.slice(top.length)), mode }))
    if (there === null) {
      await rename(top, final)
      return setModes(folders)
    }
    await checkMerge(top, final)
    const fresh = await Promise.all(folders.map(async ({ path }) => (await look(path)) === null))
    await merge(top, final)
    return setModes(folders.filter((_, index) => fresh[index]))
  })
}

type Folder = { path: string; mode: number }
type Link = { path: string; target: string }

/** Last, and the deepest first: a folder that may not be written to can be neither filled nor moved. */
async function setModes(folders: readonly Folder[]): Promise<void> {
  for (const { path, mode } of folders.toReversed()) await chmod(path, mode)
}

/**
 * Links are made last: nothing is ever written through one, wherever it points. Set-user-id bits do not come along.
 * Settles with the folder that the archive is of, and the modes that its folders are to get.
 */
async function unpack(
  bytes: AsyncIterable<Buffer>,
  folder: string,
): Promise<{ top: string; modes: Folder[] }> {
  const { extract } = await import('tar')
  const links: Link[] = []
  const modes: Folder[] = []
  let outside: Failure | null = null
  const wanted = (entry: ReadEntry): boolean => {
    const path = inside(folder, entry.path)
    if (path === null) {
      // Thrown here it would be lost in a callback of the parser.
      outside ??= reachesOutside(entry.path)
      return false
    }
    entry.mode = (entry.mode ?? 0o644) & 0o777
    if (entry.type === 'SymbolicLink') {
      links.push({ path, target: entry.linkpath ?? '' })
      return false
    }
    if (entry.type === 'Directory') {
      modes.push({ path, mode: entry.mode & ~process.umask() })
      entry.mode |= 0o700
    }
    return true
  }
  const unpacking = extract({
    cwd: folder,
    strict: true,
    preserveOwner: false,
    filter: (_, entry) => wanted(entry as ReadEntry),
  })
  await feed(bytes, unpacking)
  if (outside !== null) throw outside
  const top = modes[0]?.path
  if (top === undefined) throw new Failure(EXIT.refused, 'The box sent an archive without a folder.')
  for (const link of links) await makeLink(folder, link)
  return { top, modes: modes.filter(({ path }) => path === top || path.startsWith(top + sep)) }
}

/** It is no stream of Node's: its `close` comes when everything is on disk, and it may report several errors. */
async function feed(bytes: AsyncIterable<Buffer>, unpacking: Unpack): Promise<void> {
  const done = new Promise<void>((resolve, reject) => {
    unpacking.on('close', resolve)
    unpacking.on('error', reject)
  })
  done.catch(() => undefined)
  for await (const chunk of bytes) {
    if (!unpacking.write(chunk)) await Promise.race([once(unpacking, 'drain'), done])
  }
  unpacking.end()
  await done
}

/** The path of an entry, without a slash at its end; null for one that is not within `folder`. */
function inside(folder: string, name: string): string | null {
  if (name.startsWith('/') || name.split('/').includes('..')) return null
  return join(folder, name).replace(/\/+$/, '')
}

const reachesOutside = (name: string): Failure =>
  new Failure(EXIT.refused, `The box sent an archive that reaches outside: ${printable(name)}.`)

async function makeLink(folder: string, { path, target }: Link): Promise<void> {
  const parent = dirname(path)
  await mkdir(parent, { recursive: true })
  const real = join(await realpath(folder), parent.slice(folder.length))
  if ((await realpath(parent)) !== real) throw reachesOutside(path)
  await symlink(target, path)
}
