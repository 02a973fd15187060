// Root file systems of Linux distributions, built once with mmdebstrap and cached.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from '../project.ts'
import { requires } from '../requires.ts'
import { LONG_DEADLINE_MS } from '../wait-until.ts'

const BUILD_SCRIPT = join(import.meta.dirname, 'build-trees.sh')
const CACHE_DIR = join(PROJECT_DIR, 'node_modules/.cache/boxwood/root-filesystems')
const REQUIRED_PROGRAMS = [
  'mmdebstrap',
  'slirp4netns',
  'unshare',
  'nsenter',
  'setpriv',
  'flock',
  'ip',
  'curl',
] as const
/** The exit status of the build script for a mirror that cannot be reached. */
const EX_TEMPFAIL = 75

/** The Debian suite from which each is built. build-trees.sh describes them. */
const SUITES = { trixie: 'trixie', busybox: 'trixie', bookworm: 'bookworm' } as const

export type TreeName = keyof typeof SUITES

/**
 * Their paths, or the reason why this machine cannot have them. They must not be changed: machines use them as the lower
 * layer of an overlay.
 */
export type Trees<Name extends TreeName> = { paths: Record<Name, string> } | { skip: string }

/** Builds the root file systems that the cache does not have. */
export async function buildTrees<Name extends TreeName>(names: readonly Name[]): Promise<Trees<Name>> {
  if (process.getuid?.() !== 0) return { skip: 'machines in namespaces need root' }
  const skipReason = requires(...REQUIRED_PROGRAMS)
  if (skipReason !== false) return { skip: skipReason }
  mkdirSync(CACHE_DIR, { recursive: true })
  const version = createHash('sha256').update(readFileSync(BUILD_SCRIPT)).digest('hex').slice(0, 8)
  const getDir = (suite: string) => join(CACHE_DIR, `${suite}-${version}`)
  const suites = [...new Set(names.map((name) => SUITES[name]))]
  const results = await Promise.all(suites.map((suite) => build(suite, getDir(suite))))
  const skip = results.find((reason) => reason !== null)
  if (skip) return { skip }
  const paths = names.map((name) => [name, join(getDir(SUITES[name]), name)] as const)
  return { paths: Object.fromEntries(paths) as Record<Name, string> }
}

/** Resolves with the reason why the mirror cannot be reached, or null. */
function build(suite: string, dir: string): Promise<string | null> {
  return new Promise((resolve, reject) => {
    // Test files run concurrently. mmdebstrap mounts /proc, /sys and devices in the trees.
    const args = [`${dir}.lock`, 'unshare', '--mount', '--propagation', 'private', BUILD_SCRIPT, suite, dir]
    execFile('flock', args, { timeout: LONG_DEADLINE_MS }, (error, _stdout, stderr) => {
      if (error === null) resolve(null)
      else if (error.code === EX_TEMPFAIL) resolve(stderr.trim())
      else reject(new Error(`failed to build root file systems from ${suite}: ${stderr}`, { cause: error }))
    })
  })
}
