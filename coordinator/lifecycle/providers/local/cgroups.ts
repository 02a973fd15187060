// Limits by cgroup: which controllers this process may use for its children is found by trying, v2 first, then v1.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Isolation } from '../../../../shared/api/boxes.ts'
import { TIERS, type Tier } from '../../../../shared/tiers.ts'

export type Controller = Isolation['limits'][number]
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const satisfies Controller[]

/** Enough for a parallel build; a fork bomb ends here. */
const MAX_PIDS = 4096
const PERIOD_MICROSECONDS = 100_000

/** A folder in which a cgroup per box may be made, and what such a cgroup can limit. */
type Hierarchy = { version: 1 | 2; parent: string; controllers: Controller[] }
export type Cgroups = { hierarchies: Hierarchy[]; controllers: Controller[] }

type CgroupMount = { version: 1 | 2; controllers: string[]; own: string; mountPoint: string }

/** What can be limited here. Takes a few ms and leaves nothing behind. */
export async function probeCgroups(): Promise<Cgroups> {
  const hierarchies: Hierarchy[] = []
  const missing = new Set<Controller>(CONTROLLERS)
  for (const mount of cgroupMounts()) {
    const wanted = CONTROLLERS.filter(
      (name) => missing.has(name) && (mount.version === 2 || mount.controllers.includes(name)),
    )
    if (wanted.length === 0) continue
    for (const parent of parentsToTry(mount)) {
      const controllers = await tryParent(mount.version, parent, wanted)
      if (controllers.length === 0) continue
      hierarchies.push({ version: mount.version, parent, controllers })
      for (const name of controllers) missing.delete(name)
      break
    }
  }
  return { hierarchies, controllers: CONTROLLERS.filter((name) => !missing.has(name)) }
}

/** Makes the box's cgroups, or gives those that are there the size's limits. Answers their folders. */
export function makeCgroups(cgroups: Cgroups, boxId: string, tier: Tier): string[] {
  return cgroups.hierarchies.map(({ version, parent, controllers }) => {
    const dir = join(parent, `boxwood-${boxId}`)
    mkdirSync(dir, { recursive: true })
    for (const name of controllers) limit(version, dir, name, tier)
    return dir
  })
}

export function processesIn(dirs: string[]): number[] {
  return dirs.flatMap((dir) => {
    const file = join(dir, 'cgroup.procs')
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').map(Number).filter(Boolean) : []
  })
}

/** Removes cgroups whose processes have ended; the kernel may need a moment to notice that they have. */
export async function removeCgroups(dirs: string[]): Promise<void> {
  for (const dir of dirs) {
    for (let attempt = 1; existsSync(dir); attempt++) {
      try {
        removeTree(dir)
      } catch (error) {
        if (attempt === 100) throw new Error(`the cgroup ${dir} cannot be removed`, { cause: error })
        await sleep(20)
      }
    }
  }
}

function removeTree(dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(dir, entry.name))
  }
  rmdirSync(dir)
}

function limit(version: 1 | 2, dir: string, name: Controller, tier: Tier): void {
  const { cpus, memoryBytes } = TIERS[tier]
  const quota = cpus * PERIOD_MICROSECONDS
  const write = (file: string, value: string | number) => writeFileSync(join(dir, file), String(value))
  const writeIfThere = (file: string, value: string | number) => {
    if (existsSync(join(dir, file))) write(file, value)
  }
  if (name === 'pids') write('pids.max', MAX_PIDS)
  else if (version === 2 && name === 'cpu') write('cpu.max', `${quota} ${PERIOD_MICROSECONDS}`)
  else if (version === 2) {
    write('memory.max', memoryBytes)
    writeIfThere('memory.swap.max', 0)
  } else if (name === 'cpu') {
    write('cpu.cfs_period_us', PERIOD_MICROSECONDS)
    write('cpu.cfs_quota_us', quota)
  } else {
    // memsw may not be below the limit: raised first and set last, so that a size may grow and shrink.
    writeIfThere('memory.memsw.limit_in_bytes', -1)
    write('memory.limit_in_bytes', memoryBytes)
    writeIfThere('memory.memsw.limit_in_bytes', memoryBytes)
  }
}

/** The controllers that took a limit and a process in a throw-away child of `parent`. */
async function tryParent(version: 1 | 2, parent: string, wanted: Controller[]): Promise<Controller[]> {
  const dir = join(parent, `boxwood-probe-${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    if (version === 2) for (const name of wanted) enable(parent, name)
    mkdirSync(dir)
  } catch {
    return []
  }
  try {
    const working = wanted.filter((name) => {
      try {
        limit(version, dir, name, 'nano')
        return true
      } catch {
        return false
      }
    })
    const joined = spawnSync('/bin/sh', ['-c', 'echo $$ >"$1/cgroup.procs"', 'sh', dir], { stdio: 'ignore' })
    return joined.status === 0 ? working : []
  } finally {
    await removeCgroups([dir])
  }
}

function enable(parent: string, controller: Controller): void {
  const file = join(parent, 'cgroup.subtree_control')
  if (readFileSync(file, 'utf8').trim().split(' ').includes(controller)) return
  try {
    writeFileSync(file, `+${controller}`)
  } catch {
    // Not available here, or processes live in this very cgroup: the next parent up is tried.
  }
}

/**
 * v1: only the cgroup we are in. v2: that and those above it, because a cgroup that holds processes cannot
 * hand controllers to its children.
 */
function parentsToTry({ version, own, mountPoint }: CgroupMount): string[] {
  const parents = [own]
  for (let dir = own; version === 2 && dir !== mountPoint; dir = dirname(dir)) parents.push(dirname(dir))
  return parents
}

/** The cgroup file systems mounted here, v2 first, with the folder of the cgroup this process is in. */
function cgroupMounts(): CgroupMount[] {
  if (!existsSync('/proc/self/cgroup')) return []
  const paths = new Map<string, string>()
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')) {
    const [, names = '', ...path] = line.split(':')
    for (const name of names.split(',')) paths.set(name, path.join(':'))
  }
  const mounts: CgroupMount[] = []
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root = '', mountPoint = ''] = before.split(' ')
    const [type, , options = ''] = after.split(' ')
    if (type !== 'cgroup' && type !== 'cgroup2') continue
    const version = type === 'cgroup2' ? 2 : 1
    const controllers = version === 2 ? [''] : options.split(',').filter((name) => paths.has(name))
    const path = paths.get(controllers[0] ?? 'none')
    if (path === undefined) continue
    const below = relative(root, path)
    // Of another namespace: what we see of it begins at the mount point.
    const own = below.startsWith('..') ? mountPoint : join(mountPoint, below)
    mounts.push({ version, controllers, own, mountPoint })
  }
  return mounts.sort((a, b) => b.version - a.version)
}
