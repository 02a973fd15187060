// Adds a platform for which the coordinator then has an agent: downloads its Node and its addon of node-pty with npm.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { AgentPlatform } from '../../../shared/agent-bundle.ts'
import { StartError } from '../../base/start-error.ts'
import { findPlatformFiles, getNodePackage, getPlatformDir } from './platforms.ts'
import { getPtyPackage } from './program-files.ts'

export type AddPlatformOptions = { projectRoot: string; dataDir: string; signal: AbortSignal }

/** Returns whether the platform was added; false: the coordinator has it. Throws StartError, and then changes nothing. */
export async function addPlatform(
  platform: AgentPlatform,
  { projectRoot, dataDir, signal }: AddPlatformOptions,
): Promise<boolean> {
  if (findPlatformFiles({ projectRoot, dataDir }, platform) !== null) return false
  const dir = getPlatformDir(dataDir, platform)
  await mkdir(dirname(dir), { recursive: true, mode: 0o700 })
  const staging = await mkdtemp(`${dir}.incomplete-`)
  try {
    await runNpm(
      ['install', '--prefix', staging, ...NPM_OPTIONS, ...packagesOf(platform, projectRoot)],
      signal,
    )
    await rm(dir, { recursive: true, force: true })
    await rename(staging, dir)
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
  if (findPlatformFiles({ projectRoot, dataDir }, platform) === null)
    throw new StartError(`The packages of npm for ${platform} have no Node, or no addon of node-pty.`)
  return true
}

/** Returns the npm packages of the platform, in the versions that this coordinator uses. */
function packagesOf(platform: AgentPlatform, projectRoot: string): string[] {
  const { resolve } = createRequire(join(projectRoot, 'package.json'))
  const { version } = createRequire(import.meta.url)(resolve('@lydell/node-pty/package.json')) as {
    version: string
  }
  return [`${getNodePackage(platform)}@${process.versions.node}`, `${getPtyPackage(platform)}@${version}`]
}

/** force: the packages are for another platform than this machine. */
const NPM_OPTIONS = [
  '--force',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=error',
]

async function runNpm(args: string[], signal: AbortSignal): Promise<void> {
  try {
    await promisify(execFile)('npm', args, { signal })
  } catch (error) {
    signal.throwIfAborted()
    const { code, stderr = '', message } = error as NodeJS.ErrnoException & { stderr?: string }
    if (code === 'ENOENT') throw new StartError('npm is not on the PATH. Install npm.', { cause: error })
    throw new StartError(`npm failed: ${stderr.trim() || message}`, { cause: error })
  }
}
