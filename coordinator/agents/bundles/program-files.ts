// The files of the agent's program: the bundled JavaScript, the native parts and the packages that are not bundled.
import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { getNativeFileName, NATIVE_PARTS, type NativePart } from '../../../shared/native-file-names.ts'
import { EXTERNAL_PACKAGES, getAgentBundle } from './agent-bundle.ts'

/** The platform of the coordinator's machine, in Node's notation, such as `linux-x64`. */
export const HOST_PLATFORM = `${process.platform}-${process.arch}`

/** Caches of the bundle. The second one is for a project that this user cannot write to. */
const PROJECT_CACHE = 'node_modules/.cache/boxwood/agent-bundle'
const DATA_CACHE = 'agent-bundle'

/** `name` is the path in the directory of the program. */
export type ProgramFile = { name: string; bytes: Uint8Array }

/** The addon of node-pty. npm does not install it on a system for which there is none. */
export const getPtyPackage = (platform: string): string => `@lydell/node-pty-${platform}`

export type ProgramOptions = {
  projectRoot: string
  dataDir: string
  platform: string
  /** The directory whose `node_modules` has the packages of the platform. */
  packagesDir: string
}

/** The list is in a fixed order. */
export async function readProgramFiles(options: ProgramOptions): Promise<ProgramFile[]> {
  const { projectRoot, dataDir, platform, packagesDir } = options
  const cacheFiles = [join(projectRoot, PROJECT_CACHE), join(dataDir, DATA_CACHE)]
  const isPortable = createPlatformFilter(platform)
  const packages = await Promise.all([
    ...EXTERNAL_PACKAGES.map((name) => readPackage(projectRoot, name)),
    readPackage(packagesDir, getPtyPackage(platform)),
  ])
  return [
    ...(await getAgentBundle(projectRoot, cacheFiles)),
    // The native parts are compiled for the coordinator's machine. Without them the agent uses its fallbacks.
    ...(platform === HOST_PLATFORM ? await readNativeFiles(projectRoot, AGENT_PARTS) : []),
    ...packages.flat().filter(({ name }) => isPortable(name)),
  ]
}

/** Packages with native addons contain the addons of all platforms. */
function createPlatformFilter(platform: string): (name: string) => boolean {
  return (name) => {
    const [, prebuilt] = /\/prebuilds\/([^/]+)\//.exec(name) ?? []
    return prebuilt === undefined || prebuilt === platform
  }
}

async function readPackage(root: string, packageName: string): Promise<ProgramFile[]> {
  const dir = join('node_modules', packageName)
  if (!existsSync(join(root, dir))) return []
  const entries = await readdir(join(root, dir), { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
  return Promise.all(names.sort().map(async (name) => ({ name, bytes: await readFile(join(root, name)) })))
}

const AGENT_PARTS: readonly NativePart[] = [
  NATIVE_PARTS.spawner,
  NATIVE_PARTS.runner,
  NATIVE_PARTS.terminalHost,
]

/** Native files are missing where there was no C compiler. */
export async function readNativeFiles(
  projectRoot: string,
  parts: readonly NativePart[],
): Promise<ProgramFile[]> {
  const dir = join(projectRoot, 'agent/exec/native')
  const found: ProgramFile[] = []
  for (const part of parts) {
    const path = join(
      dir,
      getNativeFileName(part, (name) => readFileSync(join(dir, name))),
    )
    if (existsSync(path)) found.push({ name: part.bundledFileName, bytes: await readFile(path) })
  }
  return found
}
