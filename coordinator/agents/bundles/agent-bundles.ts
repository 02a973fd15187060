// The archives that machines install: built once per content in `<data>/agent-bundles`, signed, and read from the disk.

import { sign } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { type AgentBuild, agentBuildSchema, getArchivePath } from '../../../shared/agent-build.ts'
import { type AgentPlatform, signAgentBuild } from '../../../shared/agent-bundle.ts'
import { NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import { VERSION } from '../../../shared/version.ts'
import { writePrivateFile } from '../../base/data-directory.ts'
import { type ArchiveContent, digestFile, hashContent, writeArchive } from './archive.ts'
import { createArchiveCache } from './archive-cache.ts'
import { isCompileCacheFile } from './compile-cache.ts'
import { NODE_FLAGS } from './node-flags.ts'
import { findPlatformFiles, listPlatforms } from './platforms.ts'
import { readProgramFiles } from './program-files.ts'
import type { SigningKey } from './signing-key.ts'

export type AgentBundle = AgentBuild & {
  platform: AgentPlatform
  /** The archive. */
  path: string
  /** The size of all files in the archive together, in bytes. */
  unpackedSize: number
}

export type AgentBundles = {
  /** Where the archives are. */
  readonly dir: string
  platforms(): readonly AgentPlatform[]
  /** Null: the coordinator does not have the files of the platform. */
  get(platform: AgentPlatform): Promise<AgentBundle | null>
  /** Base64 of the public key in SPKI form. */
  publicKey(): Promise<string>
  /** Signs a text with the key of the archives. Resolves to the signature in base64. */
  sign(text: string): Promise<string>
  /** Builds the archives in the background, so that the first machine does not wait. */
  prepare(): void
  /** Interrupts a build in progress. */
  close(): Promise<void>
}

export type AgentBundlesOptions = {
  projectRoot: string
  dataDir: string
  log: Pick<Logger, 'info' | 'warn'>
  openSigningKey(): Promise<SigningKey>
  /** Default: VERSION. Tests of upgrades pass another version. */
  version?: string
  /** Default: the Node of the platform. Tests pass a small file, and the project does not cache the archives with it. */
  nodeFile?: string
}

const manifestSchema = agentBuildSchema.omit({ signature: true })
type Manifest = Omit<AgentBuild, 'signature'>

/** Names in the archive. */
const SCRIPTS = ['supervise.sh', 'agent-loop.sh']
const NODE = 'node'
const EXECUTABLES = [
  'supervise.sh',
  NATIVE_PARTS.runner.bundledFileName,
  NATIVE_PARTS.terminalHost.bundledFileName,
]

/** After a failed build, such as on a full disk, requests fail with the same error for this long. */
const FAILURE_MS = 10_000

export function createAgentBundles(options: AgentBundlesOptions): AgentBundles {
  const { projectRoot, dataDir, log, version = VERSION, nodeFile } = options
  const dir = join(dataDir, 'agent-bundles')
  const bundles = new Map<AgentPlatform, Promise<AgentBundle | null>>()
  // One build at a time: a build uses a CPU for some seconds.
  const limit = pLimit(1)
  const cache = nodeFile === undefined ? createArchiveCache(projectRoot) : null
  const closing = new AbortController()
  let signingKey: Promise<SigningKey> | undefined

  /** A failed attempt, for example without a database, is repeated by the next caller. */
  const getSigningKey = () => {
    signingKey ??= options.openSigningKey().catch((error: unknown) => {
      signingKey = undefined
      throw error
    })
    return signingKey
  }

  async function build(platform: AgentPlatform): Promise<AgentBundle | null> {
    const found = findPlatformFiles(options, platform)
    if (found === null) return null
    const node = nodeFile ?? found.node
    closing.signal.throwIfAborted()
    const startedAt = performance.now()
    const { privateKey } = await getSigningKey()
    const program = await readProgramFiles({ ...options, platform, packagesDir: found.packagesDir })
    const content: ArchiveContent = {
      files: [
        // The owner of the files runs the agent, so it does not use a compile cache: see agent/start.ts.
        ...program.filter(({ name }) => !isCompileCacheFile(name)),
        ...(await Promise.all(
          SCRIPTS.map(async (name) => ({
            name,
            bytes: await readFile(join(projectRoot, 'agent/init', name)),
          })),
        )),
        { name: 'node-flags', bytes: Buffer.from(`${NODE_FLAGS.join(' ')}\n`) },
        { name: 'version', bytes: Buffer.from(`${version}\n`) },
      ],
      executables: EXECUTABLES,
      binaries: [{ name: NODE, path: node }],
    }
    const buildId = await hashContent(content)
    const path = join(dir, basename(getArchivePath({ platform, buildId })))
    const manifestFile = `${path}.json`
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const cachedNames = [basename(path), basename(manifestFile)]
    let manifest = await readManifest(manifestFile, path)
    if (manifest === null && (await cache?.load(cachedNames, dir)))
      manifest = await readManifest(manifestFile, path)
    if (manifest === null) {
      const files = [...content.files, { name: 'build-id', bytes: Buffer.from(buildId) }]
      const digest = await writeArchive({ ...content, files }, path, closing.signal)
      manifest = { platform, version, buildId, ...digest }
      await writePrivateFile(manifestFile, JSON.stringify(manifest))
      await cache?.store([path, manifestFile])
      const seconds = Math.round(performance.now() - startedAt) / 1000
      log.info({ platform, buildId, size: digest.size, seconds }, 'built the agent bundle')
    }
    await removeOtherArchives(platform, buildId)
    const unpackedSize = content.files.reduce((sum, { bytes }) => sum + bytes.length, 0) + statSync(node).size
    return { ...manifest, platform, signature: signAgentBuild(manifest, privateKey), path, unpackedSize }
  }

  async function removeOtherArchives(platform: AgentPlatform, buildId: string): Promise<void> {
    const current = basename(getArchivePath({ platform, buildId }))
    for (const name of await readdir(dir))
      if (name.startsWith(`${platform}-`) && !name.startsWith(current))
        await rm(join(dir, name), { recursive: true, force: true })
  }

  function get(platform: AgentPlatform): Promise<AgentBundle | null> {
    const known = bundles.get(platform)
    if (known !== undefined) return known
    const building = limit(() => build(platform))
    bundles.set(platform, building)
    building.then(
      // A platform can be added while the coordinator runs.
      (bundle) => bundle === null && bundles.delete(platform),
      () => setTimeout(() => bundles.delete(platform), FAILURE_MS).unref(),
    )
    return building
  }

  return {
    dir,
    platforms: () => listPlatforms(options),
    async get(platform) {
      const bundle = await get(platform)
      if (bundle === null || existsSync(bundle.path)) return bundle
      bundles.delete(platform)
      return get(platform)
    },
    publicKey: async () => (await getSigningKey()).publicKey,
    sign: async (text) =>
      sign(null, Buffer.from(text), (await getSigningKey()).privateKey).toString('base64'),
    prepare() {
      for (const platform of listPlatforms(options))
        get(platform).catch((err: unknown) => {
          if (!closing.signal.aborted)
            log.warn(
              { err, platform },
              'failed to build the agent bundle; a request for install.sh tries again',
            )
        })
    },
    async close() {
      closing.abort()
      await Promise.allSettled(bundles.values())
    },
  }
}

/** Null when there is no archive with the digest that the file states. */
async function readManifest(file: string, archive: string): Promise<Manifest | null> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const manifest = manifestSchema.safeParse(parseJson(text))
  if (!manifest.success) return null
  const digest = await digestFile(archive)
  const isIntact = digest?.size === manifest.data.size && digest.sha256 === manifest.data.sha256
  return isIntact ? manifest.data : null
}
