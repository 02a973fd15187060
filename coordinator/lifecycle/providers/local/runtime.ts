// What a box gets of this project: the agent as one bundle, its init, and nothing else.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import {
  BUNDLED_NATIVE_RUN,
  BUNDLED_NATIVE_SPAWN,
  nativeRunFile,
  nativeSpawnFile,
} from '../../../../shared/native-spawn-file.ts'

/** Has a native part, which no bundle can hold; copied next to it. */
const COPIED_PACKAGES = ['bufferutil', 'node-gyp-build']

/** In the runtime folder. */
export const RUNTIME_FILES = { agent: 'agent.mjs', init: 'init.sh' } as const
const EXECUTABLE: readonly string[] = [RUNTIME_FILES.init, BUNDLED_NATIVE_RUN]

/**
 * Kept small for boxes without the native spawner: there each command is a fork of the agent, which costs some 60 µs for
 * every MiB it has written to. Bundled, the agent has half as many of them as when its sources are loaded one by one. And
 * a heap that small is collected sooner by one thread than by several that first have to be woken; it may grow by a fifth
 * until it is, where it would be several times as large after thousands of connections.
 */
export const NODE_FLAGS = [
  '--max-semi-space-size=1',
  '--heap-growing-percent=20',
  '--single-threaded-gc',
] as const

/**
 * Bundles the agent of this project into `<dataDir>/runtime/<hash of the content>` and returns that folder. One that
 * is there already is used as it is, so a box that runs keeps the version it was started with.
 */
export async function buildRuntime(projectRoot: string, dataDir: string): Promise<string> {
  const files = await bundle(projectRoot)
  const hash = createHash('sha256')
  for (const { name, bytes } of files) hash.update(name).update('\0').update(bytes)
  const parent = join(dataDir, 'runtime')
  const folder = join(parent, hash.digest('hex').slice(0, 16))
  await mkdir(parent, { recursive: true })
  if ((await readdir(parent)).includes(basename(folder))) return folder

  const staging = `${folder}.${process.pid}`
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging)
  for (const { name, bytes } of files) await writeFile(join(staging, name), bytes)
  for (const name of COPIED_PACKAGES)
    await cp(join(projectRoot, 'node_modules', name), join(staging, 'node_modules', name), {
      recursive: true,
    })
  await openToAll([parent, staging])
  // Whole or not at all: a folder with this name is complete.
  await rename(staging, folder)
  return folder
}

async function bundle(projectRoot: string): Promise<{ name: string; bytes: Uint8Array }[]> {
  const { build, stop } = await import('esbuild')
  const built = build({
    absWorkingDir: projectRoot,
    entryPoints: { agent: 'agent/main.ts' },
    outdir: '/',
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    // Parts that are rarely used stay files of their own, and are loaded when they are.
    splitting: true,
    outExtension: { '.js': '.mjs' },
    minifyWhitespace: true,
    minifySyntax: true,
    external: [...COPIED_PACKAGES, 'utf-8-validate'],
    // CommonJS packages in the bundle ask for Node's own modules this way.
    banner: {
      js: "import{createRequire as createRequireHere}from'node:module';const require=createRequireHere(import.meta.url);",
    },
  })
  // esbuild keeps a process of its own for the next build, and there is none.
  const { outputFiles } = await built.finally(stop)
  const init = await readFile(join(projectRoot, 'agent/init/init.sh'))
  return [
    ...(await nativeParts(join(projectRoot, 'agent/exec/native'))),
    ...outputFiles.map(({ path, contents }) => ({ name: basename(path), bytes: contents })),
    { name: RUNTIME_FILES.init, bytes: init },
  ]
}

/** Where there was no compiler there are none, and the agent does without. */
async function nativeParts(folder: string): Promise<{ name: string; bytes: Uint8Array }[]> {
  const parts = [
    { name: BUNDLED_NATIVE_SPAWN, source: 'spawn.c', fileOf: nativeSpawnFile },
    { name: BUNDLED_NATIVE_RUN, source: 'run.c', fileOf: nativeRunFile },
  ]
  const found = []
  for (const { name, source, fileOf } of parts) {
    const built = join(folder, fileOf(await readFile(join(folder, source))))
    if (existsSync(built)) found.push({ name, bytes: await readFile(built) })
  }
  return found
}

/** Whatever the coordinator's umask is, box users run these. */
async function openToAll([parent, folder]: [string, string]): Promise<void> {
  await chmod(parent, 0o755)
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const executable = entry.isDirectory() || EXECUTABLE.includes(entry.name)
    await chmod(join(entry.parentPath, entry.name), executable ? 0o755 : 0o644)
  }
}
