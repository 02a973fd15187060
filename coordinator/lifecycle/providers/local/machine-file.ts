// Where a box of this provider lies on disk, and the file that remembers its machine.
import { randomBytes } from 'node:crypto'
import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { ISOLATION_LEVELS, isolation } from '../../../../shared/api/boxes.ts'
import { isUuid } from '../../../../shared/ids.ts'

/** Boxes of a coordinator that runs as root get a uid from here up: a range systemd documents as unused. */
export const FIRST_BOX_UID = 1_900_000_000
export const LAST_BOX_UID = 2_147_000_000

const identity = z.object({ pid: z.int().positive(), startTicks: z.int(), bootId: z.string() })

const machine = z.object({
  boxId: z.string().refine(isUuid),
  /** null when the coordinator is an ordinary user: the box runs as that user. */
  uid: z.int().min(FIRST_BOX_UID).max(LAST_BOX_UID).nullable(),
  /** Of the last start, null before the first. */
  level: z.enum(ISOLATION_LEVELS).nullable(),
  isolation: isolation.nullable(),
  /** The process whose end is the end of the box; null when it is stopped. */
  init: identity.nullable(),
  /** Made for the box and not removed yet. */
  cgroups: z.array(z.string()),
})
export type Machine = z.infer<typeof machine>

export type BoxPaths = ReturnType<typeof boxPaths>

/** Throws for anything that is not a box id: it becomes part of a path that is removed recursively. */
export function boxPaths(boxesDir: string, boxId: string) {
  if (!isUuid(boxId)) throw new Error(`not a box id: ${boxId}`)
  return pathsIn(join(boxesDir, boxId))
}

export function pathsIn(dir: string) {
  return {
    dir,
    home: join(dir, 'home'),
    state: join(dir, 'state'),
    tmp: join(dir, 'tmp'),
    varTmp: join(dir, 'var-tmp'),
    /** The generated files of the box's /etc. */
    etc: join(dir, 'etc'),
    /** Where a namespace's root is put together; empty for everybody else. */
    root: join(dir, 'root'),
    machine: join(dir, 'machine.json'),
    /** Written by the launcher itself before it becomes the box. */
    launched: join(dir, 'launched'),
    log: join(dir, 'log'),
  }
}

/** null: there is no such machine. */
export async function readMachine(paths: BoxPaths): Promise<Machine | null> {
  try {
    return machine.parse(JSON.parse(await readFile(paths.machine, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(`${paths.machine} cannot be read`, { cause: error })
  }
}

export async function writeMachine(paths: BoxPaths, value: Machine): Promise<void> {
  await writeAtomically(paths.machine, `${JSON.stringify(value)}\n`)
}

/**
 * Puts a file of mode 0600 in place as a whole. The exclusive temporary name makes it safe in a folder that
 * belongs to a box: nothing that the box planted there is followed.
 */
export async function writeAtomically(
  path: string,
  text: string,
  owner: number | null = null,
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(text)
    if (owner !== null) await file.chown(owner, owner)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}
