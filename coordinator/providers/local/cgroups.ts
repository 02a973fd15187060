// Per-box cgroups: limits, and a freezer. Probes what this process may delegate to child cgroups, v2 first, then v1.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Isolation } from '../../../shared/api/boxes.ts'
import { TIERS, type Tier } from '../../../shared/tiers.ts'
import { readStat } from '../parts/proc.ts'
import { InconclusiveProbeError } from '../parts/run-probe.ts'
import { findFreezer, probeFreezer } from './freezer.ts'

export type Controller = Isolation['limits'][number]
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const satisfies Controller[]

/** Enough for a parallel build, and stops a fork bomb. */
const MAX_PIDS = 4096
/**
 * Of the temporary cgroups of probes. Contains the pid namespace: another coordinator with the same cgroup may be in another
 * container, where it has other pids.
 */
const getProbePrefix = () => `boxwood-probe-${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}-`
const PERIOD_MICROSECONDS = 100_000
const REMOVE_ATTEMPTS = 100
const REMOVE_RETRY_MS = 20

/** `parent`: the directory in which a cgroup for each box can be created. `controllers`: the limits that work. */
type Hierarchy = { version: 1 | 2; parent: string; controllers: Controller[]; canFreeze: boolean }
export type Cgroups = { hierarchies: Hierarchy[]; controllers: Controller[]; canFreeze: boolean }

/** `own`: the directory of the cgroup that this process is in. */
type CgroupMount = { version: 1 | 2; controllers: string[]; own: string; mountPoint: string }

/** Finds the usable controllers and a freezer by creating and removing probe cgroups. Takes a few ms. */
export async function probeCgroups(): Promise<Cgroups> {
  const hierarchies: Hierarchy[] = []
  const missing = new Set<Controller>(CONTROLLERS)
  const mounts = listCgroupMounts()
  for (const mount of mounts) {
    const wanted = CONTROLLERS.filter(
      (name) => missing.has(name) && (mount.version === 2 || mount.controllers.includes(name)),
    )
    if (wanted.length === 0) continue
    for (const parent of listCandidateParents(mount)) {
      const hierarchy = await probeParent(mount.version, parent, wanted)
      if (hierarchy === null || hierarchy.controllers.length === 0) continue
      hierarchies.push(hierarchy)
      for (const name of hierarchy.controllers) missing.delete(name)
      break
    }
  }
  if (!hierarchies.some(({ canFreeze }) => canFreeze)) {
    const freezer = await probeSeparateFreezer(mounts)
    if (freezer !== null) hierarchies.push(freezer)
  }
  return {
    hierarchies,
    controllers: CONTROLLERS.filter((name) => !missing.has(name)),
    canFreeze: hierarchies.some(({ canFreeze }) => canFreeze),
  }
}

/** A hierarchy without limits: version 2 needs no controller to freeze, version 1 has one for it. */
async function probeSeparateFreezer(mounts: CgroupMount[]): Promise<Hierarchy | null> {
  for (const mount of mounts) {
    if (mount.version === 1 && !mount.controllers.includes('freezer')) continue
    for (const parent of listCandidateParents(mount)) {
      const hierarchy = await probeParent(mount.version, parent, [])
      if (hierarchy?.canFreeze) return hierarchy
    }
  }
  return null
}

const boxCgroupDir = ({ parent }: Hierarchy, boxId: string): string => join(parent, `boxwood-${boxId}`)

/** The directories that createCgroups creates for the box. */
export const listBoxCgroupDirs = (cgroups: Cgroups, boxId: string): string[] =>
  cgroups.hierarchies.map((hierarchy) => boxCgroupDir(hierarchy, boxId))

/** Creates the box's cgroups, or updates the limits of existing ones. Returns their directories. */
export function createCgroups(cgroups: Cgroups, boxId: string, tier: Tier): string[] {
  return cgroups.hierarchies.map((hierarchy) => {
    const dir = boxCgroupDir(hierarchy, boxId)
    mkdirSync(dir, { recursive: true })
    for (const name of hierarchy.controllers) writeLimit(hierarchy.version, dir, name, tier)
    return dir
  })
}

/** Includes the processes of nested cgroups, which a box may create where it may write to its cgroup. */
export function listCgroupPids(dirs: string[]): number[] {
  return dirs.flatMap((dir) => {
    try {
      const pids = readFileSync(join(dir, 'cgroup.procs'), 'utf8').split('\n').map(Number).filter(Boolean)
      return [...pids, ...listCgroupPids(listNested(dir))]
    } catch (error) {
      if (['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
      throw error
    }
  })
}

const listNested = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(dir, name))

/**
 * Stops the processes of the cgroups from forking, and sends SIGKILL to all of them at once where the kernel supports it
 * (cgroup v2, Linux 5.14). The caller sends SIGKILL to the remaining processes, and checks the result.
 */
export function killCgroups(dirs: string[]): void {
  for (const dir of dirs) {
    for (const [name, value] of [
      ['pids.max', '0'],
      ['cgroup.kill', '1'],
    ] as const) {
      const file = join(dir, name)
      if (existsSync(file)) writeFileSync(file, value)
    }
  }
}

/** Removes cgroups whose processes have exited. Retries, since the kernel may need a moment to notice the exits. */
export async function removeCgroups(dirs: string[]): Promise<void> {
  for (const dir of dirs) {
    for (let attempt = 1; existsSync(dir); attempt++) {
      try {
        removeCgroupTree(dir)
      } catch (error) {
        if (attempt === REMOVE_ATTEMPTS)
          throw new Error(
            `Failed to remove the cgroup ${dir}: ${(error as Error).message}. Terminate the processes in ${dir}/cgroup.procs.`,
            { cause: error },
          )
        await sleep(REMOVE_RETRY_MS)
      }
    }
  }
}

function removeCgroupTree(dir: string): void {
  for (const nested of listNested(dir)) removeCgroupTree(nested)
  rmdirSync(dir)
}

function writeLimit(version: 1 | 2, dir: string, name: Controller, tier: Tier): void {
  const { cpus, memoryBytes } = TIERS[tier]
  const quota = cpus * PERIOD_MICROSECONDS
  const write = (file: string, value: string | number) => writeFileSync(join(dir, file), String(value))
  const writeIfExists = (file: string, value: string | number) => {
    if (existsSync(join(dir, file))) write(file, value)
  }
  if (name === 'pids') write('pids.max', MAX_PIDS)
  else if (version === 2 && name === 'cpu') write('cpu.max', `${quota} ${PERIOD_MICROSECONDS}`)
  else if (version === 2) {
    write('memory.max', memoryBytes)
    writeIfExists('memory.swap.max', 0)
  } else if (name === 'cpu') {
    write('cpu.cfs_period_us', PERIOD_MICROSECONDS)
    write('cpu.cfs_quota_us', quota)
  } else {
    // memsw must never be below limit_in_bytes: lift it first and set it last, so a new limit may be higher or lower.
    writeIfExists('memory.memsw.limit_in_bytes', -1)
    write('memory.limit_in_bytes', memoryBytes)
    writeIfExists('memory.memsw.limit_in_bytes', memoryBytes)
  }
}

/** What works in a temporary child of `parent`. null: a child cannot be created, or a process cannot join it. */
async function probeParent(version: 1 | 2, parent: string, wanted: Controller[]): Promise<Hierarchy | null> {
  removeLeftovers(parent)
  const dir = join(parent, `${getProbePrefix()}${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    if (version === 2) for (const name of wanted) enableController(parent, name)
    mkdirSync(dir)
  } catch {
    return null
  }
  try {
    const controllers = wanted.filter((name) => {
      try {
        writeLimit(version, dir, name, 'nano')
        return true
      } catch {
        return false
      }
    })
    const joined = spawnSync('/bin/sh', ['-c', 'echo $$ >"$1/cgroup.procs"', 'sh', dir], { stdio: 'ignore' })
    if (joined.status === null)
      throw new InconclusiveProbeError(
        `The probe of the cgroup ${parent} could not run: ${joined.error?.message ?? joined.signal}. Try again when the machine is less busy.`,
      )
    if (joined.status !== 0) return null
    const freezer = findFreezer([dir])
    return { version, parent, controllers, canFreeze: freezer !== null && (await probeFreezer(freezer)) }
  } finally {
    await removeCgroups([dir])
  }
}

/** Removes the cgroups of coordinators that were killed during their probes. */
function removeLeftovers(parent: string): void {
  const prefix = getProbePrefix()
  for (const name of readdirSync(parent).filter((name) => name.startsWith(prefix))) {
    if (readStat(Number.parseInt(name.slice(prefix.length), 10)) !== null) continue
    try {
      rmdirSync(join(parent, name))
    } catch {
      // Another coordinator removes it, or a process of the probe has not exited.
    }
  }
}

function enableController(parent: string, controller: Controller): void {
  const file = join(parent, 'cgroup.subtree_control')
  if (readFileSync(file, 'utf8').trim().split(' ').includes(controller)) return
  try {
    writeFileSync(file, `+${controller}`)
  } catch {
    // The controller is not available here, or this cgroup contains processes. The caller tries the parent cgroup.
  }
}

/**
 * v1: only the cgroup of this process. v2: that cgroup and its ancestors, because a cgroup that contains processes
 * cannot delegate controllers to its children.
 */
function listCandidateParents({ version, own, mountPoint }: CgroupMount): string[] {
  const parents = [own]
  for (let dir = own; version === 2 && dir !== mountPoint; dir = dirname(dir)) parents.push(dirname(dir))
  return parents
}

/** The mounted cgroup file systems, v2 first. */
function listCgroupMounts(): CgroupMount[] {
  if (!existsSync('/proc/self/cgroup')) return []
  const paths = new Map<string, string>()
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')) {
    const [, names = '', ...path] = line.split(':')
    for (const name of names.split(',')) paths.set(name, path.join(':'))
  }
  const mounts: CgroupMount[] = []
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n')) {
    const [mountFields = '', fsFields = ''] = line.split(' - ')
    const [, , , root = '', mountPoint = ''] = mountFields.split(' ')
    const [type, , options = ''] = fsFields.split(' ')
    if (type !== 'cgroup' && type !== 'cgroup2') continue
    const version = type === 'cgroup2' ? 2 : 1
    const controllers = version === 2 ? [''] : options.split(',').filter((name) => paths.has(name))
    const path = paths.get(controllers[0] ?? 'none')
    if (path === undefined) continue
    const relativePath = relative(root, path)
    // Outside the root: the mount belongs to another cgroup namespace, whose visible part starts at the mount point.
    const own = relativePath.startsWith('..') ? mountPoint : join(mountPoint, relativePath)
    mounts.push({ version, controllers, own, mountPoint })
  }
  return mounts.sort((a, b) => b.version - a.version)
}
