// The paths of a box's files on the host, and the file that stores the state of its machine.

import { join } from 'node:path'
import { z } from 'zod'
import { BOX_NETWORKS, ISOLATION_LEVELS, isolationSchema } from '../../../shared/api/boxes.ts'
import { isUuid } from '../../../shared/uuid.ts'
import { validationMessage } from '../../../shared/validation-message.ts'
import { writeAtomically } from '../parts/write-atomically.ts'
import { NotRegularFileError, readStart } from './read-bounded.ts'

/** The uids of boxes of a root coordinator: a range that systemd documents as unused. */
export const FIRST_BOX_UID = 1_900_000_000
export const LAST_BOX_UID = 2_147_000_000

export const isBoxUid = (uid: number): boolean => uid >= FIRST_BOX_UID && uid <= LAST_BOX_UID

const MAX_MACHINE_FILE_BYTES = 64 * 1024

export const processIdentity = z.object({ pid: z.int().positive(), startTicks: z.int(), bootId: z.string() })

export const localIsolation = isolationSchema.extend({
  level: z.enum(ISOLATION_LEVELS),
  // Boxes that were started before this field existed share the network of the host.
  network: z.enum(BOX_NETWORKS).default('host'),
})
export type LocalIsolation = z.infer<typeof localIsolation>

const machine = z.object({
  boxId: z.string().refine(isUuid),
  /** null when the coordinator is not root: the box runs as the coordinator's user. */
  uid: z.int().refine(isBoxUid).nullable(),
  /** The isolation level of the last start; null before the first. */
  level: z.enum(ISOLATION_LEVELS).nullable(),
  isolation: localIsolation.nullable(),
  /** Whether the box sees the coordinator's socket. */
  hasSocket: z.boolean().optional(),
  /** The init process of a running box; null when the box is stopped. */
  init: processIdentity.nullable(),
  /** Directories of the cgroups that are created for the box and not removed yet. */
  cgroups: z.array(z.string()),
  /** Of a warm machine, which has not been started for a box yet: a WARM_STATE, or the digest of its directories (warm-machine.ts). */
  warm: z.string().optional(),
})
export type Machine = z.infer<typeof machine>

/** filling: the files of a box are being moved into the directories. filled: they are complete. */
export const WARM_STATES = { starting: 'starting', filling: 'filling', filled: 'filled' } as const

export type BoxPaths = ReturnType<typeof boxPaths>

/** Throws when `boxId` is not a UUID: the path it becomes part of is removed recursively. */
export function boxPaths(boxesDir: string, boxId: string) {
  if (!isUuid(boxId)) throw new Error(`Not a box id: ${boxId}`)
  return boxPathsIn(join(boxesDir, boxId))
}

export function boxPathsIn(dir: string) {
  return {
    dir,
    home: join(dir, 'home'),
    state: join(dir, 'state'),
    tmp: join(dir, 'tmp'),
    varTmp: join(dir, 'var-tmp'),
    /** Generated files for the box's /etc. */
    etc: join(dir, 'etc'),
    /** The mount point of the box's root, in its own mount namespace only. Empty on the host. */
    root: join(dir, 'root'),
    machine: join(dir, 'machine.json'),
    /**
     * The identity of the launcher process, which it writes before it executes the box's command. The file exists from
     * before a launch until all processes of the box are known to be terminated.
     */
    launchRecord: join(dir, 'launched'),
    /** Exists while the processes are paused: see pause.ts. */
    pauseRecord: join(dir, 'paused'),
    log: join(dir, 'log'),
  }
}

/** Returns null when the machine does not exist. Throws DamagedMachineError when the file is not valid. */
export async function readMachine(paths: BoxPaths): Promise<Machine | null> {
  try {
    const value = machine.parse(JSON.parse(readStart(paths.machine, MAX_MACHINE_FILE_BYTES).toString('utf8')))
    // Earlier versions mounted the socket only into boxes with a network of their own.
    return { ...value, hasSocket: value.hasSocket ?? value.isolation?.network === 'own' }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    if (error instanceof SyntaxError || error instanceof z.ZodError || error instanceof NotRegularFileError)
      throw new DamagedMachineError(paths.machine, error)
    throw error
  }
}

export class DamagedMachineError extends Error {
  override name = 'DamagedMachineError'
  constructor(path: string, cause: Error) {
    const problem = cause instanceof z.ZodError ? validationMessage(cause.issues, 'machine') : cause.message
    super(`${path} is damaged: ${problem}`, { cause })
  }
}

export async function writeMachine(paths: BoxPaths, value: Machine): Promise<void> {
  await writeAtomically(paths.machine, `${JSON.stringify(value)}\n`, { isDurable: true })
}
