// Builds the runtime directory that boxes run: the bundled agent, its native files and the init script.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  chmod,
  cp,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  BUNDLED_RUNNER_FILE_NAME,
  BUNDLED_SPAWN_ADDON_FILE_NAME,
  getRunnerFileName,
  getSpawnAddonFileName,
} from '../../../../shared/native-file-names.ts'
import { listPids, readArgv } from './proc.ts'

/** bufferutil is a native addon, which cannot be bundled. It loads its binary with node-gyp-build. */
const COPIED_PACKAGES = ['bufferutil', 'node-gyp-build']
/** The addon of node-pty, for this system. npm does not install it on a system for which there is none. */
const OPTIONAL_PACKAGES = [`@lydell/node-pty-${process.platform}-${process.arch}`]

/** File names in the runtime directory. */
export const RUNTIME_FILES = { agent: 'agent.mjs', init: 'init.sh', buildId: 'build-id' } as const
/**
 * Symlinks in the parent directory, which boxes use. `current` is the version with which a box starts its agent, also
 * when the init restarts it after an upgrade. Agents that have not restarted yet still load files of `previous`.
 */
export const RUNTIME_LINKS = { current: 'current', previous: 'previous', node: 'node' } as const
const EXECUTABLES: readonly string[] = [RUNTIME_FILES.init, BUNDLED_RUNNER_FILE_NAME]

/**
 * Keep the agent's heap small. Without the native spawner each command forks the agent, which costs about 60 µs per
 * MiB of memory that the agent has written to (the bundle halves that memory, compared with separate source files).
 * One GC thread collects a small heap faster than several threads that must be woken first. Growth by 20 % per
 * collection replaces V8's default, which makes the heap several times as large after thousands of connections.
 */
export const NODE_FLAGS = [
  '--max-semi-space-size=1',
  '--heap-growing-percent=20',
  '--single-threaded-gc',
] as const

type RuntimeFile = { name: string; bytes: Uint8Array }

/** Builds the runtime directory. The returned function returns its path, and rebuilds a directory that was removed. */
export async function createRuntime(
  projectRoot: string,
  dataDir: string,
  nodePath: string,
): Promise<() => Promise<string>> {
  let runtimeDir = await buildRuntime(projectRoot, dataDir, nodePath)
  let rebuild: Promise<string> | undefined
  return async () => {
    const currentDir = join(dirname(runtimeDir), RUNTIME_LINKS.current)
    if (Object.values(RUNTIME_FILES).every((name) => existsSync(join(currentDir, name)))) return runtimeDir
    rebuild ??= buildRuntime(projectRoot, dataDir, nodePath).finally(() => {
      rebuild = undefined
    })
    runtimeDir = await rebuild
    return runtimeDir
  }
}

/** Makes the directory the current version. */
async function linkRuntime(runtimeDir: string, nodePath: string): Promise<void> {
  const parentDir = dirname(runtimeDir)
  const current = await readTarget(join(parentDir, RUNTIME_LINKS.current))
  if (current !== null && current !== basename(runtimeDir))
    await replaceSymlink(join(parentDir, RUNTIME_LINKS.previous), current)
  await replaceSymlink(join(parentDir, RUNTIME_LINKS.current), basename(runtimeDir))
  await replaceSymlink(join(parentDir, RUNTIME_LINKS.node), nodePath)
}

const readTarget = (path: string): Promise<string | null> => readlink(path).catch(() => null)

async function replaceSymlink(path: string, target: string): Promise<void> {
  if ((await readTarget(path)) === target) return
  const tempPath = `${path}.${process.pid}`
  await rm(tempPath, { force: true })
  await symlink(target, tempPath)
  await rename(tempPath, path)
}

/**
 * Bundles the agent of this project into `<dataDir>/runtime/<hash of the content>` and returns that directory. A complete
 * directory is never changed. It becomes the current version.
 */
export async function buildRuntime(
  projectRoot: string,
  dataDir: string,
  nodePath = process.execPath,
): Promise<string> {
  const runtimeDir = await buildVersion(projectRoot, join(dataDir, 'runtime'))
  await linkRuntime(runtimeDir, nodePath)
  return runtimeDir
}

async function buildVersion(projectRoot: string, parentDir: string): Promise<string> {
  const files = await bundleAgent(projectRoot)
  const hash = createHash('sha256')
  for (const { name, bytes } of files) hash.update(name).update('\0').update(bytes)
  const buildId = hash.digest('hex').slice(0, 16)
  const runtimeDir = join(parentDir, buildId)
  files.push({ name: RUNTIME_FILES.buildId, bytes: Buffer.from(buildId) })
  await mkdir(parentDir, { recursive: true })
  const optionalPackages = OPTIONAL_PACKAGES.filter((name) =>
    existsSync(join(projectRoot, 'node_modules', name)),
  )
  const packages = [...COPIED_PACKAGES, ...optionalPackages].map((name) => join('node_modules', name))
  const names = [...files.map(({ name }) => name), ...packages]
  if (names.every((name) => existsSync(join(runtimeDir, name)))) return runtimeDir

  const stagingDir = `${runtimeDir}.${process.pid}`
  await rm(stagingDir, { recursive: true, force: true })
  await mkdir(stagingDir)
  for (const { name, bytes } of files) await writeFile(join(stagingDir, name), bytes)
  for (const path of packages) await cp(join(projectRoot, path), join(stagingDir, path), { recursive: true })
  await makeWorldReadable([parentDir, stagingDir])
  await rm(runtimeDir, { recursive: true, force: true })
  await rename(stagingDir, runtimeDir)
  return runtimeDir
}

/**
 * Lists the directories of other versions that no running box uses: neither the previous version nor one whose path is
 * in a command line. The runner of a detached command at level process has the path, and a box that an earlier version
 * of the coordinator started.
 */
export async function listUnusedRuntimes(runtimeDir: string): Promise<string[]> {
  const parentDir = dirname(runtimeDir)
  const commandLines = listPids().map((pid) => readArgv(pid).join(' '))
  // The data directory may have another path than in the coordinator that started a box.
  const isUsed = (name: string) =>
    commandLines.some((line) => line.includes(`/${basename(parentDir)}/${name}`))
  const links = Object.values(RUNTIME_LINKS)
  const targets = await Promise.all(links.map((name) => readTarget(join(parentDir, name))))
  const kept = new Set([basename(runtimeDir), ...links, ...targets])
  const names = (await readdir(parentDir)).filter((name) => !kept.has(name) && !isUsed(name))
  return names.map((name) => join(parentDir, name))
}

async function bundleAgent(projectRoot: string): Promise<RuntimeFile[]> {
  const { build, stop } = await import('esbuild')
  const built = build({
    absWorkingDir: projectRoot,
    // Without an extension: the npm package contains JavaScript.
    entryPoints: { agent: './agent/main' },
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
    external: [...COPIED_PACKAGES, 'utf-8-validate'],
    // The bundled CommonJS packages load Node's built-in modules with require.
    banner: {
      js: "import{createRequire as createRequireHere}from'node:module';const require=createRequireHere(import.meta.url);",
    },
  })
  // Without stop, esbuild's child process keeps running for further builds.
  const { outputFiles } = await built.finally(stop)
  const init = await readFile(join(projectRoot, 'agent/init/init.sh'))
  return [
    ...(await readNativeFiles(join(projectRoot, 'agent/exec/native'))),
    ...outputFiles.map(({ path, contents }) => ({ name: basename(path), bytes: contents })),
    { name: RUNTIME_FILES.init, bytes: init },
  ]
}

/** The native files are missing where there was no C compiler; the agent then uses its fallbacks. */
async function readNativeFiles(dir: string): Promise<RuntimeFile[]> {
  const candidates = [
    { name: BUNDLED_SPAWN_ADDON_FILE_NAME, source: 'spawn.c', getFileName: getSpawnAddonFileName },
    { name: BUNDLED_RUNNER_FILE_NAME, source: 'run.c', getFileName: getRunnerFileName },
  ]
  const found: RuntimeFile[] = []
  for (const { name, source, getFileName } of candidates) {
    const path = join(dir, getFileName(await readFile(join(dir, source))))
    if (existsSync(path)) found.push({ name, bytes: await readFile(path) })
  }
  return found
}

/** Box users read and execute these files. chmod ignores the coordinator's umask, which could forbid that. */
async function makeWorldReadable([parentDir, runtimeDir]: [string, string]): Promise<void> {
  await chmod(parentDir, 0o755)
  await chmod(runtimeDir, 0o755)
  for (const entry of await readdir(runtimeDir, { recursive: true, withFileTypes: true })) {
    const isExecutable = entry.isDirectory() || EXECUTABLES.includes(entry.name)
    await chmod(join(entry.parentPath, entry.name), isExecutable ? 0o755 : 0o644)
  }
}
