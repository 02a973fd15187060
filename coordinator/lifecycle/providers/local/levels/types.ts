// What every level turns into a command line.
import type { Mount } from '../view.ts'

export const SHELL_PATH = '/bin/sh'

export type LevelInput = {
  /** The box's own uid when the coordinator is root, else null. */
  uid: number | null
  hostname: string
  /** Ignored where there is no view. */
  mounts: Mount[]
  /** An empty folder of this box, to put a root together in. */
  scratch: string
  /** Arguments of /bin/sh: a script and its own, in paths of the view. */
  command: string[]
}
