// Assembles the runtime directory that boxes run: the bundled agent, its native files and the init script.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { isCompileCacheFile } from '../../agents/bundles/compile-cache.ts'
import {
  HOST_PLATFORM,
  type ProgramFile,
  readNativeFiles,
  readProgramFiles,
} from '../../agents/bundles/program-files.ts'
import { buildKeyringFilter } from './keyring-filter.ts'
import { listPids, readArgv } from './proc.ts'
import { listRootPrograms, NEEDS_ROOT_DIR, NEEDS_ROOT_SCRIPT } from './root-programs.ts'
import { writeAtomically } from './write-atomically.ts'

/** File names in the runtime directory. */
export const RUNTIME_FILES = {
  agent: 'agent.mjs',
  init: 'init.sh',
  agentLoop: 'agent-loop.sh',
  buildId: 'build-id',
  keyringFilter: 'keyring-filter.bpf',
} as const
/**
 * Symlinks in the parent directory, which boxes use. `current` is the version with which a box starts its agent, also
 * when the init restarts it after an upgrade. Agents that have not restarted yet still load files of `previous`.
 */
export const RUNTIME_LINKS = { current: 'current', previous: 'previous', node: 'node' } as const
/** In the parent directory: a line for a user who needs root access, which needs-root.sh prints. */
const ROOT_ADVICE_FILE = 'root-advice'
const EXECUTABLES: readonly string[] = [
  RUNTIME_FILES.init,
  NATIVE_PARTS.runner.bundledFileName,
  NATIVE_PARTS.terminalHost.bundledFileName,
  NATIVE_PARTS.confinement.bundledFileName,
]

/** @param name a path in the runtime directory */
export const isRuntimeExecutable = (name: string): boolean =>
  EXECUTABLES.includes(name) || dirname(name) === NEEDS_ROOT_DIR

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
 * Assembles the runtime of this project in `<dataDir>/runtime/<hash of the content>` and returns that directory. A complete
 * directory is never changed. It becomes the current version.
 */
export async function buildRuntime(
  projectRoot: string,
  dataDir: string,
  nodePath = process.execPath,
): Promise<string> {
  const parentDir = join(dataDir, 'runtime')
  const files = [
    ...(await readProgramFiles({ projectRoot, dataDir, platform: HOST_PLATFORM, packagesDir: projectRoot })),
    ...(await readScripts(join(projectRoot, 'agent/init'))),
    ...(await readRootPrograms(join(projectRoot, 'agent/init'))),
    ...(await readNativeFiles(projectRoot, [NATIVE_PARTS.confinement])),
    { name: RUNTIME_FILES.keyringFilter, bytes: buildKeyringFilter() },
  ]
  const runtimeDir = await writeVersion(parentDir, files)
  await linkRuntime(runtimeDir, nodePath)
  return runtimeDir
}

/** Boxes that run already see the line too. */
export async function writeRootAdvice(runtimeDir: string, advice: string): Promise<void> {
  const path = join(dirname(runtimeDir), ROOT_ADVICE_FILE)
  await writeAtomically(path, `${advice}\n`, { mode: 0o644 })
}

async function writeVersion(parentDir: string, content: readonly ProgramFile[]): Promise<string> {
  const program = content.filter(({ name }) => !isCompileCacheFile(name))
  const hash = createHash('sha256')
  for (const { name, bytes } of program) hash.update(`${name}\0${bytes.length}\0`).update(bytes)
  const buildId = hash.digest('hex').slice(0, 16)
  const runtimeDir = join(parentDir, buildId)
  const buildIdFile = { name: RUNTIME_FILES.buildId, bytes: Buffer.from(buildId) }
  if (await isComplete(runtimeDir, [...program, buildIdFile])) return runtimeDir

  const stagingDir = `${runtimeDir}.${process.pid}`
  await rm(stagingDir, { recursive: true, force: true })
  for (const { name, bytes } of [...content, buildIdFile]) {
    await mkdir(dirname(join(stagingDir, name)), { recursive: true })
    await writeFile(join(stagingDir, name), bytes)
  }
  await makeWorldReadable([parentDir, stagingDir])
  await rm(runtimeDir, { recursive: true, force: true })
  await rename(stagingDir, runtimeDir)
  return runtimeDir
}

/** Compares the contents: a power failure may have damaged a file. */
async function isComplete(runtimeDir: string, files: readonly ProgramFile[]): Promise<boolean> {
  for (const { name, bytes } of files) {
    const written = await readFile(join(runtimeDir, name)).catch(() => null)
    if (written === null || !written.equals(bytes)) return false
  }
  return true
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
  const kept = new Set([basename(runtimeDir), ROOT_ADVICE_FILE, ...links, ...targets])
  const names = (await readdir(parentDir)).filter((name) => !kept.has(name) && !isUsed(name))
  return names.map((name) => join(parentDir, name))
}

const readScripts = (dir: string): Promise<ProgramFile[]> =>
  Promise.all(
    [RUNTIME_FILES.init, RUNTIME_FILES.agentLoop].map(async (name) => ({
      name,
      bytes: await readFile(join(dir, name)),
    })),
  )

async function readRootPrograms(dir: string): Promise<ProgramFile[]> {
  const bytes = await readFile(join(dir, NEEDS_ROOT_SCRIPT))
  return listRootPrograms().map((name) => ({ name: join(NEEDS_ROOT_DIR, name), bytes }))
}

/** Box users read and execute these files. chmod ignores the coordinator's umask, which could forbid that. */
async function makeWorldReadable([parentDir, runtimeDir]: [string, string]): Promise<void> {
  await chmod(parentDir, 0o755)
  await chmod(runtimeDir, 0o755)
  for (const entry of await readdir(runtimeDir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const isExecutable = entry.isDirectory() || isRuntimeExecutable(relative(runtimeDir, path))
    await chmod(path, isExecutable ? 0o755 : 0o644)
  }
}
