// Creates the npm package of the client: one module without dependencies, and its types.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'

const PROJECT_DIR = join(import.meta.dirname, '..')

const CONFIG = {
  extends: join(PROJECT_DIR, 'client/tsconfig.json'),
  compilerOptions: {
    composite: false,
    rootDir: join(PROJECT_DIR, 'client'),
    rewriteRelativeImportExtensions: true,
    typeRoots: [],
  },
  include: [join(PROJECT_DIR, 'client/**/*.ts')],
  references: [],
}

/** Writes the .tgz file into the directory. @returns its name */
export async function packClient(targetDir: string): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'boxwood-pack-client-'))
  try {
    await build({
      entryPoints: [join(PROJECT_DIR, 'client/exports.ts')],
      outfile: join(dir, 'index.js'),
      bundle: true,
      format: 'esm',
      platform: 'neutral',
      mainFields: ['module', 'main'],
      target: 'es2022',
    })
    const config = join(dir, 'tsconfig.json')
    writeFileSync(config, JSON.stringify(CONFIG))
    const tsc = join(PROJECT_DIR, 'node_modules/.bin/tsc')
    execFileSync(tsc, ['--project', config, '--outDir', join(dir, 'types'), '--noCheck'], {
      stdio: 'inherit',
    })
    rmSync(config)
    cpSync(join(PROJECT_DIR, 'docs/client.md'), join(dir, 'README.md'))
    cpSync(join(PROJECT_DIR, 'LICENSE'), join(dir, 'LICENSE'))
    const manifest = createManifest()
    writeFileSync(join(dir, 'package.json'), JSON.stringify(manifest, null, 2))
    execFileSync('npm', ['pack', dir, '--pack-destination', targetDir], { stdio: 'inherit' })
    return `${manifest.name}-${manifest.version}.tgz`
  } finally {
    rmSync(dir, { recursive: true })
  }
}

function createManifest() {
  const { version, license, type } = JSON.parse(readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8'))
  return {
    name: 'boxwood-client',
    version: version as string,
    description: 'The client of Boxwood for programs',
    license,
    type,
    sideEffects: false,
    engines: { node: '>=20.3' },
    exports: { '.': { types: './types/exports.d.ts', default: './index.js' } },
  }
}
