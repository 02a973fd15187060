// Isolation level `process`: a plain process. It has its own uid when the coordinator is root, else only its own home.
import { type LevelInput, SHELL_PATH } from '../level-input.ts'

export function buildProcessCommand({ uid, confinement, shellArgs }: LevelInput): string[] {
  return [...buildSetprivPrefix(uid), ...confinement.prefix, SHELL_PATH, ...shellArgs]
}

/** A command prefix that permanently switches to the box's user; empty when the coordinator is not root. */
export function buildSetprivPrefix(uid: number | null): string[] {
  if (uid === null) return []
  return [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${uid}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--ambient-caps=-all',
    '--bounding-set=-all',
    '--no-new-privs',
    '--',
  ]
}
