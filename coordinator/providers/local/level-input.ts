// The input from which each isolation level builds the command line of a box.
import type { ConfinementInput } from './confinement.ts'
import type { Mount } from './filesystem-view.ts'

export const SHELL_PATH = '/bin/sh'

export type LevelInput = {
  /** The box's own uid when the coordinator is root, else null. */
  uid: number | null
  hostname: string
  /** Unused by the process level. */
  mounts: Mount[]
  /** An empty directory of this box to mount the root on. */
  rootDir: string
  confinement: ConfinementInput
  /** Arguments of /bin/sh: a script and its arguments, with paths as the box sees them. */
  shellArgs: string[]
}
