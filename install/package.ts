// Creates the npm package as a .tgz file, for `npm run package`. The package contains JavaScript: Node does not run TypeScript
// in node_modules. Its directories are those of the project. Argument: the directory of the file; default: the current one.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'

const PROJECT_DIR = join(import.meta.dirname, '..')
const SOURCE_DIRS = ['agent', 'cli', 'coordinator', 'shared']
const FILES = ['box', 'boxwood', 'docs', 'install/bootstrap', 'install/monitoring', 'README.md', 'LICENSE']
/** The rest is TypeScript, its configuration, and native parts that were compiled for this machine. */
const COPIED_EXTENSIONS = ['.c', '.css', '.js', '.sh']

function pack(targetDir: string): void {
  const dir = mkdtempSync(join(tmpdir(), 'boxwood-pack-'))
  try {
    const tsc = join(PROJECT_DIR, 'node_modules/.bin/tsc')
    const config = join(PROJECT_DIR, 'install/tsconfig.package.json')
    execFileSync(tsc, ['--project', config, '--outDir', dir], { stdio: 'inherit' })
    for (const path of FILES) cpSync(join(PROJECT_DIR, path), join(dir, path), { recursive: true })
    for (const source of SOURCE_DIRS) copyAssets(source, dir)
    // npm installs the dependencies in the versions of this file.
    cpSync(join(PROJECT_DIR, 'package-lock.json'), join(dir, 'npm-shrinkwrap.json'))
    writeFileSync(join(dir, 'package.json'), JSON.stringify(createManifest(), null, 2))
    execFileSync('npm', ['pack', dir, '--pack-destination', targetDir], { stdio: 'inherit' })
  } finally {
    rmSync(dir, { recursive: true })
  }
}

function copyAssets(source: string, dir: string): void {
  const paths = readdirSync(join(PROJECT_DIR, source), { recursive: true, encoding: 'utf8' })
  for (const path of paths.filter((file) => COPIED_EXTENSIONS.includes(extname(file))))
    cpSync(join(PROJECT_DIR, source, path), join(dir, source, path))
}

function createManifest(): object {
  const manifest = JSON.parse(readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8'))
  const { name, version, description, license, type, bin, allowScripts, dependencies } = manifest
  const { peerDependencies, peerDependenciesMeta } = manifest
  const scripts = {
    'build-native': 'node install/build-native.js',
    postinstall: 'node install/build-native.js',
  }
  return {
    name,
    version,
    description,
    license,
    type,
    bin,
    scripts,
    allowScripts,
    dependencies,
    peerDependencies,
    peerDependenciesMeta,
  }
}

pack(resolve(process.argv[2] ?? '.'))
