// The builds of the agent in `<prefix>/versions`: downloads, verifies and unpacks a new one, and switches to it. A build is
// installed completely or not at all: it gets its name after everything else.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, readlink, rename, rm, statfs } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import type { AgentBuild } from '../../shared/agent-build.ts'
import { verifyAgentBuild } from '../../shared/agent-bundle.ts'
import { ApiError } from '../../shared/errors.ts'
import { sync } from '../durable-file.ts'
import { replaceSymlink } from '../replace-symlink.ts'
import { receiveArchive } from './receive-archive.ts'

export type BuildsOptions = {
  /** The directory with `versions`, `current`, `previous` and `coordinator.pub`. */
  prefix: string
  platform: string
  /** The build of this process. */
  buildId: string
  log: Logger
  /** Requests the archive from the coordinator. */
  fetchArchive(build: AgentBuild, signal: AbortSignal): Promise<Readable>
  /** Lists the command lines of all processes. Default: from /proc. */
  listCommandLines?(): Promise<string[]>
}

export type Builds = {
  /**
   * Installs the build, without starting it. No-op when it is installed. A second call for the same build waits for the first.
   * @throws ApiError `bad_request` for a build that this machine must not run, `exec_failed` when the installation failed
   */
  install(build: AgentBuild): Promise<void>
  /**
   * Makes the supervisor start this build next.
   * @throws ApiError `not_found` when it is not installed
   */
  activate(buildId: string): Promise<void>
  /** Removes what an interrupted installation has left, and builds that are neither current, previous nor in use. */
  prune(): Promise<void>
  close(): Promise<void>
}

const STAGING_PREFIX = '.staging-'
/** Files without which a build cannot run. */
const REQUIRED_FILES = ['node', 'agent.mjs', 'supervise.sh', 'agent-loop.sh', 'build-id']
/** The content of an archive has about four times its size. */
const SPACE_FACTOR = 5
const START_TIMEOUT_MS = 30_000

export function createBuilds(options: BuildsOptions): Builds {
  const { prefix, platform, buildId: ownBuildId, log, fetchArchive } = options
  const { listCommandLines = readCommandLines } = options
  const versionsDir = join(prefix, 'versions')
  const closeController = new AbortController()
  /** One installation at a time. */
  let last: { buildId: string; done: Promise<void> } | undefined

  async function assertSigned(build: AgentBuild): Promise<void> {
    if (build.platform !== platform)
      throw new ApiError('bad_request', `The build is for ${build.platform}. This machine is ${platform}.`)
    const keyFile = join(prefix, 'coordinator.pub')
    if (!verifyAgentBuild(build, await readFile(keyFile, 'utf8')))
      throw new ApiError(
        'bad_request',
        `The signature of build ${build.buildId} is not valid for the key in ${keyFile}. If the coordinator has a new key, install the agent again.`,
      )
  }

  async function download(build: AgentBuild, signal: AbortSignal): Promise<void> {
    const { bavail, bsize } = await statfs(versionsDir)
    const needed = build.size * SPACE_FACTOR
    if (bavail * bsize < needed)
      throw new Error(`${versionsDir} has ${bavail * bsize} free bytes. The build needs up to ${needed}.`)
    const stagingDir = join(versionsDir, `${STAGING_PREFIX}${build.buildId}`)
    const contentDir = join(stagingDir, 'content')
    await rm(stagingDir, { recursive: true, force: true })
    try {
      await mkdir(contentDir, { recursive: true })
      const archive = join(stagingDir, 'archive')
      await receiveArchive(await fetchArchive(build, signal), archive, build, signal)
      // The module is loaded for the first upgrade only.
      const { syncTree, unpack } = await import('./unpack.ts')
      await unpack(archive, contentDir)
      await assertUsable(contentDir, build.buildId)
      await syncTree(contentDir)
      await rename(contentDir, join(versionsDir, build.buildId))
      await sync(versionsDir)
    } finally {
      await rm(stagingDir, { recursive: true, force: true })
    }
  }

  async function install(build: AgentBuild): Promise<void> {
    await assertSigned(build)
    if (existsSync(join(versionsDir, build.buildId))) return
    log.info({ buildId: build.buildId, size: build.size }, 'downloading a build of the agent')
    await download(build, closeController.signal).catch((cause: Error) => {
      throw new ApiError('exec_failed', `Failed to install build ${build.buildId}: ${cause.message}`, {
        cause,
      })
    })
    log.info({ buildId: build.buildId }, 'installed a build of the agent')
  }

  const readTarget = (link: string): Promise<string | null> =>
    readlink(join(prefix, link)).then(
      (target) => basename(target),
      () => null,
    )

  async function replaceLink(link: string, target: string): Promise<void> {
    if ((await readTarget(link)) === target) return
    await replaceSymlink(join(prefix, link), join('versions', target))
  }

  return {
    async install(build) {
      if (last?.buildId === build.buildId) return last.done
      const previous = last?.done.catch(() => undefined)
      const done = Promise.resolve(previous).then(() => install(build))
      const current = { buildId: build.buildId, done }
      last = current
      await done.finally(() => {
        if (last === current) last = undefined
      })
    },

    async activate(buildId) {
      if (!existsSync(join(versionsDir, buildId)))
        throw new ApiError('not_found', `Build ${buildId} is not installed.`)
      // The order matters: until the second step, the supervisor starts the current build without a trial.
      if (buildId !== ownBuildId) await replaceLink('previous', ownBuildId)
      await replaceLink('current', buildId)
      await sync(prefix)
    },

    async prune() {
      const kept = new Set([ownBuildId, await readTarget('current'), await readTarget('previous')])
      const commandLines = await listCommandLines()
      const isUsed = (name: string) =>
        last !== undefined || commandLines.some((line) => line.includes(`${versionsDir}/${name}/`))
      for (const name of await readdir(versionsDir)) {
        if (kept.has(name) || isUsed(name)) continue
        await rm(join(versionsDir, name), { recursive: true, force: true })
        log.info({ name }, 'removed an unused build of the agent')
      }
    },

    async close() {
      closeController.abort()
      await last?.done.catch(() => undefined)
    },
  }
}

/** A build for another platform, or for a newer system, does not run here. */
async function assertUsable(dir: string, buildId: string): Promise<void> {
  const missing = REQUIRED_FILES.filter((name) => !existsSync(join(dir, name)))
  if (missing.length > 0) throw new Error(`The archive has no ${missing.join(', ')}.`)
  if ((await readFile(join(dir, 'build-id'), 'utf8')).trim() !== buildId)
    throw new Error('The archive has another build.')
  await promisify(execFile)(join(dir, 'node'), ['--version'], { timeout: START_TIMEOUT_MS }).catch(
    (cause: Error) => {
      throw new Error(`Its Node does not run on this machine: ${cause.message}`, { cause })
    },
  )
}

async function readCommandLines(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  // A process may have exited.
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
}
