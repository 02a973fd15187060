// Level 3: a plain process; as root with a uid of its own, else with nothing but a home of its own.
import { type LevelInput, SHELL_PATH } from './types.ts'

export function processCommand({ uid, command }: LevelInput): string[] {
  return [...dropTo(uid), SHELL_PATH, ...command]
}

/** A command prefix that becomes the box's user for good; nothing for a coordinator that is no root itself. */
export function dropTo(uid: number | null): string[] {
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
