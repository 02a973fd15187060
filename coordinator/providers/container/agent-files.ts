// The files of the agent directory in containers: the current build of the agent, its Node and the links to both.
import { readdir, readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { type Pack, pack } from 'tar-stream'
import { COMPILE_CACHE_DIR } from '../../agents/bundles/compile-cache.ts'
import { findHostNode } from '../../agents/bundles/platforms.ts'
import { NEEDS_ROOT_DIR } from '../parts/root-programs.ts'
import { buildRuntime, isRuntimeExecutable, RUNTIME_LINKS } from '../parts/runtime.ts'
import { findNodeFiles, type NodeFiles } from './node-files.ts'

export type AgentFiles = {
  /** The id of the build, which agents report as part of their version. */
  buildId: string
  /** The build to which the init of a box returns when the current one does not connect; null: there is none. */
  previousBuildId: string | null
  /** Changes with the content of the directory. */
  contentId: string
  /** The names of the files in the agent directory that exist when the build, and Node, are complete. */
  buildMarker: string
  nodeMarker: string
  /** The name of the directory of Node. The marker of a build contains that of the Node with which it was written. */
  nodeDir: string
  /** Returns a tar stream with the files, owned by root, that the directory does not have, and with the links. */
  pack(directory: AgentDirectory): Readable
}

/** What an agent directory has already. */
export type AgentDirectory = {
  /** Whether it has the file AgentFiles.buildMarker. */
  hasBuild: boolean
  /** Whether it has the file AgentFiles.nodeMarker. */
  hasNode: boolean
  /** The build to which the link `current` points; null: none. */
  linkedBuild: string | null
  /** The directory is new: it gets the previous build too. */
  isNew?: boolean
}

/** Assembles the current build in the data directory. @throws PermanentProviderError when this machine cannot provide it */
export async function readAgentFiles(options: { projectRoot: string; dataDir: string }): Promise<AgentFiles> {
  const [runtimeDir, node] = await Promise.all([
    buildRuntime(options.projectRoot, options.dataDir),
    findNodeFiles(findHostNode(options.projectRoot)),
  ])
  const buildId = basename(runtimeDir)
  const previousDir = await findPreviousBuild(runtimeDir)
  return {
    buildId,
    previousBuildId: previousDir && basename(previousDir),
    contentId: `${buildId}-${node.dirName}`,
    buildMarker: getMarker(buildId),
    nodeMarker: getMarker(node.dirName),
    nodeDir: node.dirName,
    pack(directory) {
      const stream = pack()
      writeFiles(stream, { directory, runtimeDir, previousDir, buildId, node }).then(
        () => stream.finalize(),
        (error: Error) => stream.destroy(error),
      )
      return Readable.from(stream)
    },
  }
}

/** The file with the names of the build and the Node to which the links point: Podman does not report the targets of links. */
export const INSTALLED_FILE = 'installed'
export const MARKER_PREFIX = 'complete-'
const getMarker = (dirName: string): string => MARKER_PREFIX + dirName

type Content = {
  directory: AgentDirectory
  runtimeDir: string
  previousDir: string | null
  buildId: string
  node: NodeFiles
}

/** The markers, the links and the name of the build come last: an interrupted copy has no effect. */
async function writeFiles(stream: Pack, content: Content): Promise<void> {
  const { directory, runtimeDir, previousDir, buildId, node } = content
  if (!directory.hasNode) {
    for (const { name, bytes } of await node.read()) await writeFile(stream, name, bytes, 0o755)
    await writeFile(stream, getMarker(node.dirName), Buffer.alloc(0), 0o644)
  }
  if (!directory.hasBuild) await writeBuild(stream, runtimeDir, node)
  if (directory.isNew && previousDir !== null) {
    await writeBuild(stream, previousDir, node)
    writeLink(stream, RUNTIME_LINKS.previous, basename(previousDir))
  }
  const { linkedBuild } = directory
  if (linkedBuild !== null && linkedBuild !== buildId) writeLink(stream, RUNTIME_LINKS.previous, linkedBuild)
  writeLink(stream, RUNTIME_LINKS.node, node.dirName)
  writeLink(stream, RUNTIME_LINKS.current, buildId)
  await writeFile(stream, INSTALLED_FILE, Buffer.from(`${buildId} ${node.dirName}`), 0o644)
}

async function writeBuild(stream: Pack, runtimeDir: string, { dirName }: NodeFiles): Promise<void> {
  const buildId = basename(runtimeDir)
  for (const { name, path } of await listRuntimeFiles(runtimeDir)) {
    const mode = isRuntimeExecutable(name) ? 0o755 : 0o644
    await writeFile(stream, join(buildId, name), await readFile(path), mode)
  }
  await writeFile(stream, getMarker(buildId), Buffer.from(dirName), 0o644)
}

async function findPreviousBuild(runtimeDir: string): Promise<string | null> {
  const dir = await realpath(join(dirname(runtimeDir), RUNTIME_LINKS.previous)).catch(() => null)
  return dir === null || basename(dir) === basename(runtimeDir) ? null : dir
}

const writeFile = (stream: Pack, name: string, bytes: Buffer, mode: number): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.entry({ name, mode }, bytes, (error) => (error ? reject(error) : resolve()))
  })

function writeLink(stream: Pack, name: string, linkname: string): void {
  stream.entry({ name, linkname, type: 'symlink' })
}

/** Without the scripts for boxes that are not root. */
async function listRuntimeFiles(runtimeDir: string): Promise<{ name: string; path: string }[]> {
  const entries = await readdir(runtimeDir, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ name: renameForRoot(relative(runtimeDir, path)), path }))
    .filter(({ name }) => !name.startsWith(`${NEEDS_ROOT_DIR}/`))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The name of the directory of the compile cache ends with the uid of the process that reads it. */
const renameForRoot = (name: string): string =>
  name.startsWith(`${COMPILE_CACHE_DIR}/`) ? name.replace(/-\d+\//, '-0/') : name
