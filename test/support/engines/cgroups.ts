// Removes the cgroups of Incus instances.
import { existsSync, readdirSync, readFileSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../wait-until.ts'

const listNames = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : [])

/** The names of the instances that a server with this data directory had. */
export const listInstancesOf = (incusDir: string): string[] => listNames(join(incusDir, 'logs'))

/** Instances that were killed leave their cgroups, in the cgroup of the server, or in the root, of each hierarchy. */
export async function removeCgroups(instances: readonly string[]): Promise<void> {
  const own = new Set(
    readFileSync('/proc/self/cgroup', 'utf8')
      .split('\n')
      .flatMap((line) => /^\d+:[^:]*:(\/.+)$/.exec(line)?.[1] ?? []),
  )
  const hierarchies = [
    '/sys/fs/cgroup',
    ...listNames('/sys/fs/cgroup').map((name) => `/sys/fs/cgroup/${name}`),
  ]
  const dirs = hierarchies.flatMap((dir) => [dir, ...[...own].map((path) => dir + path)])
  const isOurs = (name: string) =>
    instances.some((instance) =>
      new RegExp(`^lxc\\.(payload|monitor|pivot)\\.${instance}(-\\d+)?$`).test(name),
    )
  for (const dir of dirs) {
    if (!existsSync(dir) || !statSync(dir).isDirectory()) continue
    for (const name of readdirSync(dir).filter(isOurs)) {
      // A process that was killed leaves its cgroup when it is reaped.
      await waitUntil('the cgroup is empty', () => removeCgroup(join(dir, name)))
    }
  }
}

/** Returns false while the cgroup has processes. */
function removeCgroup(dir: string): boolean {
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true }))
      if (entry.isDirectory() && !removeCgroup(join(dir, entry.name))) return false
    rmdirSync(dir)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EBUSY') return false
    if (code === 'ENOENT') return true
    throw error
  }
}
