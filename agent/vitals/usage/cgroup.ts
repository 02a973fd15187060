// The limits and the usage of the cgroup in which the agent runs, version 1 or 2.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type OwnCgroup = {
  /** null: not limited. */
  cpus: number | null
  memoryBytes: number | null
  readCpuSeconds(): number
  /** Memory that the kernel cannot reclaim: without the page cache. null without the memory controller. */
  readMemoryBytes(): number | null
}

/** Version 1 has this value, rounded down to pages, where memory is not limited. */
const UNLIMITED_MEMORY = 2 ** 62

/**
 * The cgroup of the agent if it has a CPU limit or a memory limit, else that of its container. null: the agent runs on a
 * machine without limits. With version 1, a container without limits cannot be distinguished from a machine.
 */
export function findOwnCgroup(procRoot: string, cgroupRoot: string): OwnCgroup | null {
  const paths = parseOwnPaths(readText(join(procRoot, 'self/cgroup')) ?? '')
  const version2Dir = findDirectory(cgroupRoot, paths.get(''), 'cpu.stat')
  const cgroup =
    version2Dir === undefined ? findVersion1(cgroupRoot, paths) : createVersion2Cgroup(version2Dir)
  if (cgroup !== null && (cgroup.cpus !== null || cgroup.memoryBytes !== null)) return cgroup
  return isContainerRoot(cgroupRoot) ? createVersion2Cgroup(cgroupRoot) : null
}

/** The root cgroup of a machine does not have this file, the root of a cgroup namespace does. */
const isContainerRoot = (cgroupRoot: string): boolean =>
  readText(join(cgroupRoot, 'cgroup.type')) !== undefined

function createVersion2Cgroup(dir: string): OwnCgroup {
  const read = (name: string) => readText(join(dir, name)) ?? ''
  // Missing where the controller is not enabled, and in the root cgroup of a machine.
  const [quota, period] = read('cpu.max').split(/\s+/)
  return {
    cpus: toLimit(Number(quota) / Number(period)),
    memoryBytes: toLimit(Number.parseInt(read('memory.max'), 10)),
    readCpuSeconds: () => parseFields(read('cpu.stat'))('usage_usec') / 1e6,
    readMemoryBytes() {
      const current = read('memory.current')
      if (current === '') return null
      const field = parseFields(read('memory.stat'))
      const reclaimable = field('file') - field('shmem') + field('slab_reclaimable')
      return Math.max(0, Number(current) - reclaimable)
    },
  }
}

function findVersion1(cgroupRoot: string, paths: Map<string, string>): OwnCgroup | null {
  const cpuDir = findDirectory(join(cgroupRoot, 'cpu'), paths.get('cpu'), 'cpu.cfs_quota_us')
  const accountingDir = findDirectory(join(cgroupRoot, 'cpuacct'), paths.get('cpuacct'), 'cpuacct.usage')
  const memoryDir = findDirectory(join(cgroupRoot, 'memory'), paths.get('memory'), 'memory.limit_in_bytes')
  if (cpuDir === undefined || accountingDir === undefined || memoryDir === undefined) return null
  const readNumber = (dir: string, name: string) => Number(readText(join(dir, name)) ?? Number.NaN)
  const memoryBytes = readNumber(memoryDir, 'memory.limit_in_bytes')
  return {
    cpus: toLimit(readNumber(cpuDir, 'cpu.cfs_quota_us') / readNumber(cpuDir, 'cpu.cfs_period_us')),
    memoryBytes: memoryBytes > UNLIMITED_MEMORY ? null : toLimit(memoryBytes),
    readCpuSeconds: () => readNumber(accountingDir, 'cpuacct.usage') / 1e9,
    readMemoryBytes() {
      const field = parseFields(readText(join(memoryDir, 'memory.stat')) ?? '')
      const cache = field('total_cache') - field('total_shmem')
      return Math.max(0, readNumber(memoryDir, 'memory.usage_in_bytes') - cache)
    },
  }
}

/** Controller → path, from lines such as `4:cpu,cpuacct:/docker/1`. Version 2 has the empty controller. */
function parseOwnPaths(text: string): Map<string, string> {
  const lines = text.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
  return new Map(
    lines.flatMap((match) => (match?.[1] ?? '').split(',').map((name) => [name, match?.[2] ?? ''] as const)),
  )
}

/** In a container, the root of the mounted hierarchy is often the container's own cgroup. */
const findDirectory = (root: string, path: string | undefined, file: string): string | undefined =>
  [path === undefined ? root : join(root, path), root].find((dir) => readText(join(dir, file)) !== undefined)

const toLimit = (value: number): number | null => (Number.isFinite(value) && value > 0 ? value : null)

/** Lines of a name and a number. 0 for a missing name. */
function parseFields(text: string): (name: string) => number {
  const fields = new Map(text.split('\n').map((line) => line.split(' ') as [string, string]))
  return (name) => Number(fields.get(name) ?? 0)
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1').trim()
  } catch {
    // The controller, or the whole hierarchy, does not exist here.
    return undefined
  }
}
