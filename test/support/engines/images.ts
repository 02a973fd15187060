// The images of tests with engines, and the registry that serves them. They are built once, and cached.
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from '../project.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import type { Sandbox } from './sandbox.ts'

const SCRIPTS = ['build-images.sh', 'fill-registry.sh'].map((name) => join(import.meta.dirname, name))
const CACHE_DIR = join(PROJECT_DIR, 'node_modules/.cache/boxwood/engine-images')
const REGISTRY_CONFIG = join(import.meta.dirname, 'registry.yml')
/** The exit status of the build script for a mirror that cannot be reached. */
const EX_TEMPFAIL = 75

/** Programs that build and serve the images. */
export const IMAGE_PROGRAMS = ['mmdebstrap', 'skopeo', 'docker-registry', 'flock', 'unshare', 'ss'] as const

const PROXY = join(import.meta.dirname, 'registry-proxy.mjs')
const PROXY_PORT = 5001

/** The address of a registry with faults: see registry-proxy.mjs. */
export const FAULTY_REGISTRY = `127.0.0.1:${PROXY_PORT}`

/** The address of the registry in the network of a sandbox. Engines use it as a mirror of docker.io. */
export const REGISTRY = '127.0.0.1:5000'

/**
 * The root file systems as tar files, and the storage of the registry with the images debian:12, debian, busybox and musl.
 * build-images.sh describes them.
 */
export type EngineImages = { debian: string; busybox: string; musl: string; registry: string }

let built: Promise<EngineImages | { skip: string }> | undefined

/** Builds the images that the cache does not have. Resolves with the reason where this machine cannot build them. */
export const buildEngineImages = (): Promise<EngineImages | { skip: string }> => (built ??= build())

function build(): Promise<EngineImages | { skip: string }> {
  mkdirSync(CACHE_DIR, { recursive: true })
  const hash = createHash('sha256')
  for (const script of SCRIPTS) hash.update(readFileSync(script))
  const dir = join(CACHE_DIR, hash.digest('hex').slice(0, 8))
  return new Promise((resolve, reject) => {
    // Test files run concurrently. mmdebstrap mounts /proc, /sys and devices in the trees.
    const args = [`${dir}.lock`, 'unshare', '--mount', '--propagation', 'private', SCRIPTS[0] as string, dir]
    execFile('flock', args, { timeout: LONG_DEADLINE_MS }, (error, _stdout, stderr) => {
      if (error === null)
        resolve({
          debian: join(dir, 'debian.tar'),
          busybox: join(dir, 'busybox.tar'),
          musl: join(dir, 'musl.tar'),
          registry: join(dir, 'registry'),
        })
      else if (error.code === EX_TEMPFAIL) resolve({ skip: stderr.trim() })
      else reject(new Error(`failed to build the images of the tests: ${stderr}`, { cause: error }))
    })
  })
}

/** Serves the images at REGISTRY in the sandbox. */
export async function startRegistry(sandbox: Sandbox, images: EngineImages) {
  const start = async () => {
    const registry = sandbox.spawn(['docker-registry', 'serve', REGISTRY_CONFIG], {
      env: { REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY: images.registry },
      log: 'registry.log',
    })
    await waitUntil('the registry listens', () => {
      if (registry.hasExited())
        throw new Error(`the registry has exited: ${readFileSync(join(sandbox.dir, 'registry.log'), 'utf8')}`)
      return sandbox.run(['ss', '-ltnH']).includes(REGISTRY)
    })
    return registry
  }
  let registry = await start()
  return {
    /** Starts FAULTY_REGISTRY. */
    async startFaulty() {
      const port = REGISTRY.slice(REGISTRY.indexOf(':') + 1)
      sandbox.spawn([process.execPath, PROXY, String(PROXY_PORT), port], { log: 'registry-proxy.log' })
      await waitUntil('the registry with faults listens', () =>
        sandbox.run(['ss', '-ltnH']).includes(FAULTY_REGISTRY),
      )
    },
    /** Ends the registry with its connections. */
    kill: () => registry.kill('SIGKILL'),
    async start() {
      registry = await start()
    },
  }
}

/** Unpacks the tar file of an image into the directory. @param files contents of /sbin/NAME that are added, as programs */
export function unpackImage(file: string, dir: string, files: Record<string, string> = {}): void {
  execFileSync('tar', ['--extract', `--file=${file}`, `--directory=${dir}`, '--numeric-owner', '--xattrs'])
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(dir, 'sbin', name), content, { mode: 0o755 })
}
