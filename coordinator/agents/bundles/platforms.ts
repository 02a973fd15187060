// The platforms for which this coordinator has an agent: its own, and those that were added to the data directory.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { AGENT_PLATFORMS, type AgentPlatform } from '../../../shared/agent-bundle.ts'
import { getPtyPackage, HOST_PLATFORM } from './program-files.ts'

/** Where the files of a platform are that differ from platform to platform. */
export type PlatformFiles = {
  node: string
  /** The directory whose `node_modules` has the addon of node-pty. */
  packagesDir: string
}

export const getPlatformDir = (dataDir: string, platform: AgentPlatform): string =>
  join(dataDir, 'platforms', platform)

/** The npm package with Node for a platform. */
export const getNodePackage = (platform: AgentPlatform): string => `node-${platform}`

/** Null: the coordinator has no Node for the platform. */
export function findPlatformFiles(
  { projectRoot, dataDir }: { projectRoot: string; dataDir: string },
  platform: AgentPlatform,
): PlatformFiles | null {
  if (platform === HOST_PLATFORM) return { node: findHostNode(projectRoot), packagesDir: projectRoot }
  const packagesDir = getPlatformDir(dataDir, platform)
  const node = join(packagesDir, 'node_modules', getNodePackage(platform), 'bin/node')
  const pty = join(packagesDir, 'node_modules', getPtyPackage(platform), 'pty.node')
  return existsSync(node) && existsSync(pty) ? { node, packagesDir } : null
}

export const listPlatforms = (options: { projectRoot: string; dataDir: string }): AgentPlatform[] =>
  AGENT_PLATFORMS.filter((platform) => findPlatformFiles(options, platform) !== null)

/** The Node of the npm package, which is linked to few libraries. A Node of the distribution may need more of them. */
export function findHostNode(projectRoot: string): string {
  try {
    const manifest = createRequire(join(projectRoot, 'package.json')).resolve('node/package.json')
    const node = join(dirname(manifest), 'bin/node')
    if (existsSync(node)) return node
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
  }
  return process.execPath
}
