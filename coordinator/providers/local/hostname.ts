// Changes the hostname of a box that runs.
import { isInstalled } from '../parts/system-path.ts'
import { isRoot } from './directories.ts'
import { findLauncher } from './launch.ts'
import type { BoxPaths, LocalIsolation, Machine } from './machine-file.ts'
import { runCommand } from './run-command.ts'

const PROGRAMS = ['nsenter', 'hostname'] as const

/**
 * Why the hostname of boxes with this isolation cannot change while they run; null: it can. The hostname belongs to the user
 * namespace in which it was created. The process that launched the box is in this namespace or in its parent, except the bwrap of an
 * ordinary user without a network namespace.
 */
export function findHostnameProblem({
  level,
  network,
}: Pick<LocalIsolation, 'level' | 'network'>): string | null {
  if (level === 'process') return null
  const program = PROGRAMS.find((name) => !isInstalled(name))
  if (program !== undefined) return `${program} is not installed`
  return isRoot || level !== 'bubblewrap' || network === 'own'
    ? null
    : 'an ordinary user can change the hostname of a running box only when the box has a network of its own'
}

/** No-op at level process, where boxes have the hostname of the machine. */
export async function setHostname(
  paths: BoxPaths,
  { init, isolation }: Machine & { isolation: LocalIsolation },
  hostname: string,
): Promise<void> {
  if (isolation.level === 'process') return
  const launcher = findLauncher(paths)
  if (init === null || launcher === null) throw new Error('The box is not running.')
  const asOwner = isRoot
    ? []
    : ['nsenter', `--target=${launcher.pid}`, '--user', '--preserve-credentials', '--']
  await runCommand([...asOwner, 'nsenter', `--target=${init.pid}`, '--uts', '--', 'hostname', hostname])
}
