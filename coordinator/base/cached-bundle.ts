// Bundles with esbuild: the agent, and the dashboard. A bundle is cached: it is used again while all files that it was built
// from are unchanged.
import { basename, dirname, join } from 'node:path'
import type { BuildOptions, BuildResult } from 'esbuild'
import pLimit from 'p-limit'
import {
  type BundleFile,
  hashInputs,
  haveChangedSince,
  readBundleCache,
  writeBundleCache,
} from './bundle-cache.ts'

/** Files that change when npm installs other versions of esbuild or of the bundled packages. */
const INSTALLED_VERSIONS = [
  'package-lock.json',
  'npm-shrinkwrap.json',
  'node_modules/.package-lock.json',
  'node_modules/esbuild/package.json',
  // When this project is an npm package, npm may install the bundled packages beside it.
  '../.package-lock.json',
]

export type CachedBundleOptions = {
  projectRoot: string
  /** Where a bundle may be cached, in order of preference. The first that can be written is used. */
  cacheFiles: readonly string[]
  /** Identifies how the bundle is built: another builder does not use the cache. */
  builder: string
  /** `sources` are the files that the bundle was built from, relative to the project. */
  build(): Promise<{ files: BundleFile[]; sources: string[] }>
}

export async function getCachedBundle(options: CachedBundleOptions): Promise<BundleFile[]> {
  const { projectRoot, cacheFiles, builder, build } = options
  const hash = (paths: readonly string[]) => hashInputs(projectRoot, paths, builder)
  for (const cacheFile of cacheFiles) {
    const cached = readBundleCache(cacheFile)
    if (cached !== null && hash(cached.inputs) === cached.inputHash) return cached.files
  }
  const startedAt = Date.now()
  const { files, sources } = await build()
  const inputs = [...new Set([...INSTALLED_VERSIONS, ...sources.flatMap(listManifests), ...sources])]
  // An input that changes during the build may have one content in the bundle and another one in the hash.
  if (!haveChangedSince(projectRoot, inputs, startedAt))
    cacheFiles.some((cacheFile) => writeBundleCache(cacheFile, { inputs, inputHash: hash(inputs), files }))
  return files
}

/** One build at a time: stop() ends the child process of all builds of this process. */
const limit = pLimit(1)

/** Resolves to the files and the sources of the bundle. */
export const runEsbuild = (
  options: BuildOptions,
): Promise<Pick<BuildResult<{ metafile: true; write: false }>, 'outputFiles' | 'metafile'>> =>
  limit(async () => {
    const { build, stop } = await import('esbuild')
    // Without stop, esbuild's child process keeps running for further builds.
    return build({ ...options, metafile: true as const, write: false as const }).finally(stop)
  })

/** The paths that a package.json which applies to the source may have. */
function listManifests(source: string): string[] {
  const paths: string[] = []
  for (let dir = dirname(source); dir !== '.' && basename(dir) !== '..'; dir = dirname(dir))
    paths.push(join(dir, 'package.json'))
  return [...paths, 'package.json']
}
