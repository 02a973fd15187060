// Bundles the agent with esbuild. A bundle is cached: it is used again while all files that it was built from are unchanged.
import { readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, dirname, extname, join } from 'node:path'
import type { BuildOptions, Plugin } from 'esbuild'
import {
  type BundleFile,
  hashInputs,
  haveChangedSince,
  readBundleCache,
  writeBundleCache,
} from './bundle-cache.ts'
import { createCompileCache } from './compile-cache.ts'
import { NODE_FLAGS } from './node-flags.ts'

/** Packages with native addons, which cannot be bundled. bufferutil loads its binary with node-gyp-build. */
export const EXTERNAL_PACKAGES = ['bufferutil', 'node-gyp-build']

const BUILD_OPTIONS = {
  // The entry points have no extension, because the npm package contains JavaScript.
  entryPoints: {
    agent: './agent/start',
    'machine-info': './agent/vitals/machine-info',
    setup: './agent/setup/main',
  },
  outdir: '/',
  write: false,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  // Dynamically imported modules become separate files, which are loaded on first use.
  splitting: true,
  outExtension: { '.js': '.mjs' },
  minifyWhitespace: true,
  minifySyntax: true,
  external: [...EXTERNAL_PACKAGES, 'utf-8-validate', 'kerberos'],
  // The bundle then does not depend on tsconfig.json.
  tsconfigRaw: {},
  metafile: true,
  // Bundled CommonJS packages load built-in modules and native addons with require.
  banner: { js: "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
} as const satisfies BuildOptions

/**
 * Imports only the used exports of Node's built-in modules. An import statement reads all of them, and those of node:http
 * load undici, which takes 20 ms.
 */
const BUILTIN_IMPORTS: Plugin = {
  name: 'built-in imports',
  setup({ onResolve, onLoad }) {
    const filter = new RegExp(`^(node:)?(${builtinModules.join('|')})$`)
    onResolve({ filter }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'builtin', sideEffects: false } : { external: true },
    )
    onLoad({ filter, namespace: 'builtin' }, ({ path }) => {
      const names = Object.keys(process.getBuiltinModule(path) ?? {}).filter((name) =>
        /^(?!default$)\w+$/.test(name),
      )
      // esbuild removes the unused ones.
      const exports = names.map((name) => `export const ${name}=/*@__PURE__*/(()=>builtin.${name})()`)
      const builtin = `process.getBuiltinModule(${JSON.stringify(path)})`
      return { contents: [`const builtin=${builtin}`, 'export default builtin', ...exports].join('\n') }
    })
  },
}

/** How the bundle is built: these files, and the version and flags of Node, on which the compile cache depends. */
const BUILDER = [
  process.version,
  ...NODE_FLAGS,
  ...['agent-bundle', 'compile-cache'].map((name) =>
    readFileSync(join(import.meta.dirname, `${name}${extname(import.meta.filename)}`)),
  ),
].join('\0')

/** Files that change when npm installs other versions of esbuild or of the bundled packages. */
const INSTALLED_VERSIONS = [
  'package-lock.json',
  'npm-shrinkwrap.json',
  'node_modules/.package-lock.json',
  'node_modules/esbuild/package.json',
  // When this project is an npm package, npm may install the bundled packages beside it.
  '../.package-lock.json',
]

/**
 * Returns the bundled files of this project's agent.
 * @param cacheFiles where a bundle may be cached, in order of preference; the first that can be written is used
 */
export async function getAgentBundle(
  projectRoot: string,
  cacheFiles: readonly string[],
): Promise<BundleFile[]> {
  const hash = (paths: readonly string[]) => hashInputs(projectRoot, paths, BUILDER)
  for (const cacheFile of cacheFiles) {
    const cached = readBundleCache(cacheFile)
    if (cached !== null && hash(cached.inputs) === cached.inputHash) return cached.files
  }
  const startedAt = Date.now()
  const { files, inputs } = await buildBundle(projectRoot)
  // An input that changes during the build may have one content in the bundle and another one in the hash.
  if (!haveChangedSince(projectRoot, inputs, startedAt))
    cacheFiles.some((cacheFile) => writeBundleCache(cacheFile, { inputs, inputHash: hash(inputs), files }))
  return files
}

async function buildBundle(projectRoot: string): Promise<{ files: BundleFile[]; inputs: string[] }> {
  const { build, stop } = await import('esbuild')
  // Without stop, esbuild's child process keeps running for further builds.
  const options = { ...BUILD_OPTIONS, plugins: [BUILTIN_IMPORTS], absWorkingDir: projectRoot }
  const { outputFiles, metafile } = await build(options).finally(stop)
  const sources = Object.keys(metafile.inputs).filter((path) => !path.startsWith('builtin:'))
  const files = outputFiles.map(({ path, contents }) => ({ name: basename(path), bytes: contents }))
  return {
    files: [...files, ...(await createCompileCache(files, 'agent.mjs'))],
    inputs: [...new Set([...INSTALLED_VERSIONS, ...sources.flatMap(listManifests), ...sources])],
  }
}

/** The paths that a package.json which applies to the source may have. */
function listManifests(source: string): string[] {
  const paths: string[] = []
  for (let dir = dirname(source); dir !== '.' && basename(dir) !== '..'; dir = dirname(dir))
    paths.push(join(dir, 'package.json'))
  return [...paths, 'package.json']
}
