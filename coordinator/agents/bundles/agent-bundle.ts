// Bundles the agent with esbuild.
import { readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, extname, join } from 'node:path'
import type { BuildOptions, Plugin } from 'esbuild'
import type { BundleFile } from '../../base/bundle-cache.ts'
import { getCachedBundle, runEsbuild } from '../../base/cached-bundle.ts'
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

/**
 * Returns the bundled files of this project's agent.
 * @param cacheFiles where a bundle may be cached, in order of preference; the first that can be written is used
 */
export async function getAgentBundle(
  projectRoot: string,
  cacheFiles: readonly string[],
): Promise<BundleFile[]> {
  return getCachedBundle({ projectRoot, cacheFiles, builder: BUILDER, build: () => buildBundle(projectRoot) })
}

async function buildBundle(projectRoot: string): Promise<{ files: BundleFile[]; sources: string[] }> {
  const options = { ...BUILD_OPTIONS, plugins: [BUILTIN_IMPORTS], absWorkingDir: projectRoot }
  const { outputFiles, metafile } = await runEsbuild(options)
  const files = outputFiles.map(({ path, contents }) => ({ name: basename(path), bytes: contents }))
  return {
    files: [...files, ...(await createCompileCache(files, 'agent.mjs'))],
    sources: Object.keys(metafile.inputs).filter((path) => !path.startsWith('builtin:')),
  }
}
