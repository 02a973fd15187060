// Lists the processes of a cgroup of version 1 or 2.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A cgroup that has been removed or is not readable, or a threaded one, whose processes are listed by a parent. */
const UNLISTED = new Set(['ENOENT', 'ENODEV', 'EOPNOTSUPP', 'EACCES'])

/** Includes the processes of nested cgroups, which a box may create where it may write to its cgroup. */
export function listCgroupPids(dir: string): number[] {
  try {
    const pids = readFileSync(join(dir, 'cgroup.procs'), 'utf8').split('\n').map(Number).filter(Boolean)
    const nested = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    // A process that is moved meanwhile may be listed twice.
    return [...new Set([...pids, ...nested.flatMap(({ name }) => listCgroupPids(join(dir, name)))])]
  } catch (error) {
    if (UNLISTED.has((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  }
}
