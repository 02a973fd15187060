// Node's compile cache of the bundled agent. The coordinator creates it with the bundle; boxes only read it.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import type { BundleFile } from '../../base/bundle-cache.ts'
import { NODE_FLAGS } from './node-flags.ts'

/** The name of a directory in the runtime directory. It contains a directory for the version and flags of Node and for a uid. */
export const COMPILE_CACHE_DIR = 'compile-cache'
const TIMEOUT_MS = 30_000

/** The content of these files differs each time that they are created. Node checks them. */
export const isCompileCacheFile = (name: string): boolean => name.startsWith(`${COMPILE_CACHE_DIR}/`)

/** Arguments: the cache directory, the module. */
const LOAD = `import{enableCompileCache}from'node:module'
enableCompileCache({directory:process.argv[1],portable:true})
await import(process.argv[2])`

/** Loads the bundled agent, which exits because it has no configuration. Returns no files when that fails. */
export async function createCompileCache(
  bundle: readonly BundleFile[],
  entry: string,
): Promise<BundleFile[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-compile-'))
  try {
    for (const { name, bytes } of bundle) await writeFile(join(dir, name), bytes)
    const cacheDir = join(dir, COMPILE_CACHE_DIR)
    await mkdir(cacheDir)
    const args = [...NODE_FLAGS, '--input-type=module', '--eval', LOAD, cacheDir, join(dir, entry)]
    await promisify(execFile)(process.execPath, args, { env: {}, timeout: TIMEOUT_MS }).catch(() => undefined)
    const entries = await readdir(cacheDir, { recursive: true, withFileTypes: true })
    const paths = entries.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name))
    return await Promise.all(
      paths.sort().map(async (path) => ({ name: relative(dir, path), bytes: await readFile(path) })),
    )
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** The name of the directory that Node reads contains the uid of the process: links such a name for the user of a box. */
export async function linkCompileCache(runtimeDir: string, uid: number): Promise<void> {
  const dir = join(runtimeDir, COMPILE_CACHE_DIR)
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
  for (const entry of entries.filter((file) => file.isDirectory()))
    await symlink(entry.name, join(dir, entry.name.replace(/-\d+$/, `-${uid}`))).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      },
    )
}

/** Removes the links of all versions for the user of a box that is removed. */
export async function unlinkCompileCache(runtimesDir: string, uid: number): Promise<void> {
  for (const version of await readdir(runtimesDir, { withFileTypes: true })) {
    if (!version.isDirectory()) continue
    const dir = join(runtimesDir, version.name, COMPILE_CACHE_DIR)
    const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
    for (const entry of entries)
      if (entry.isSymbolicLink() && entry.name.endsWith(`-${uid}`)) await unlink(join(dir, entry.name))
  }
}
