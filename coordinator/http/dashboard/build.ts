// Bundles the dashboard with esbuild, and compresses its files.
import { readFileSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib } from 'node:zlib'
import type { BuildOptions } from 'esbuild'
import type { BundleFile } from '../../base/bundle-cache.ts'
import { getCachedBundle, runEsbuild } from '../../base/cached-bundle.ts'

const BUILD_OPTIONS = {
  entryPoints: { app: './dashboard/app.tsx', style: './dashboard/design/style.css' },
  // The directory is in no path of the output: it is not written.
  outdir: '/',
  write: false,
  bundle: true,
  platform: 'browser',
  format: 'esm',
  target: ['chrome123', 'firefox128', 'safari17.5'],
  // Pages that are imported dynamically become files of their own, which the browser loads on first use.
  splitting: true,
  minify: true,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  // The hash depends on the content: a file with a name never changes.
  entryNames: '[name]-[hash]',
  chunkNames: 'chunk-[hash]',
  assetNames: '[name]-[hash]',
  loader: { '.woff2': 'file' },
  // The files then do not depend on tsconfig.json.
  tsconfigRaw: {},
  metafile: true,
  logLevel: 'silent',
} as const satisfies BuildOptions

const BUILDER = [
  process.version,
  readFileSync(join(import.meta.dirname, `build${extname(import.meta.filename)}`)),
].join('\0')

/** The ends of the names of compressed files. */
export const ENCODINGS = { br: '.br', gzip: '.gz' } as const

/** Returns the files of this project's dashboard, each also compressed. Rejects with the reason of esbuild. */
export const buildDashboard = (projectRoot: string, cacheFiles: readonly string[]): Promise<BundleFile[]> =>
  getCachedBundle({ projectRoot, cacheFiles, builder: BUILDER, build: () => build(projectRoot) })

/** The page of the components is no part of the package. It shares no file with the others, which then are as small as without it. */
export const DESIGN_START = 'design-'
const DESIGN_OPTIONS = {
  ...BUILD_OPTIONS,
  entryPoints: { design: './dashboard/design-page.tsx' },
  splitting: false,
} as const satisfies BuildOptions

async function build(projectRoot: string): Promise<{ files: BundleFile[]; sources: string[] }> {
  const results = await Promise.all(
    [BUILD_OPTIONS, DESIGN_OPTIONS].map((options) => runEsbuild({ ...options, absWorkingDir: projectRoot })),
  )
  const files = results.flatMap(({ outputFiles }) =>
    outputFiles.map(({ path, contents }) => ({ name: basename(path), bytes: contents })),
  )
  return {
    files: (await Promise.all(files.map(compress))).flat(),
    sources: [...new Set(results.flatMap(({ metafile }) => Object.keys(metafile.inputs)))],
  }
}

async function compress(file: BundleFile): Promise<BundleFile[]> {
  const { name, bytes } = file
  const params = {
    [zlib.BROTLI_PARAM_QUALITY]: zlib.BROTLI_MAX_QUALITY,
    [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  }
  const [brotli, gzipped] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: zlib.Z_BEST_COMPRESSION }),
  ])
  return [file, { name: name + ENCODINGS.br, bytes: brotli }, { name: name + ENCODINGS.gzip, bytes: gzipped }]
}
