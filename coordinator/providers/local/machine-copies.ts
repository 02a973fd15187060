// Copies of machines. The copy of a fork has the files until the machine of the new box takes it over, and the clone of a snapshot
// until they are stored.
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncDirectory } from '../../base/sync-directory.ts'
import { ID_PATTERN } from '../parts/archives/archive-location.ts'
import { writeAtomically } from '../parts/write-atomically.ts'
import type { ArchiveInfo, ArchiveKey } from '../provider.ts'
import { CLONE_FILES, type MachineClone } from './clone-machine.ts'
import { COPY_PREFIX, HIDDEN_PREFIX, removeTree } from './directories.ts'
import { boxPaths, boxPathsIn, isBoxUid, type Machine, WARM_STATES, writeMachine } from './machine-file.ts'
import { emptyMachine } from './new-machine.ts'
import { NotRegularFileError, readStart } from './read-bounded.ts'
import { type MachineSource, moveFiles, syncFiles, withFiles } from './restore-machine.ts'

const RECORD_FILE = 'copy.json'
const MAX_RECORD_BYTES = 4096

const copyRecord = z.object({
  kind: z.enum(['fork', 'clone']).default('fork'),
  /** The owner of the files: in a copy, the user of the new box, and in a clone, that of the source. null: the coordinator's user. */
  uid: z.int().refine(isBoxUid).nullable(),
  contentBytes: z.int().nonnegative(),
  pausedMs: z.int().nonnegative().nullable(),
})
type CopyRecord = z.infer<typeof copyRecord>

/** Ids become parts of paths that are removed recursively. */
function copyDirOf(boxesDir: string, { workspaceId, archiveId }: ArchiveKey): string {
  for (const id of [workspaceId, archiveId]) if (!ID_PATTERN.test(id)) throw new Error(`Not an id: ${id}`)
  return join(boxesDir, `${COPY_PREFIX}${workspaceId}-${archiveId}`)
}

/** null: there is no copy, or its record is damaged. The directory gets its name when the copy is complete. */
function readCopy(dir: string): CopyRecord | null {
  let text: string
  try {
    text = readStart(join(dir, RECORD_FILE), MAX_RECORD_BYTES).toString('utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    if (error instanceof NotRegularFileError) return null
    throw error
  }
  try {
    return copyRecord.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/**
 * Creates the copy unless it exists.
 * @param uid the user of the new box @param source writes the files to disk
 */
export async function createMachineCopy(
  boxesDir: string,
  uid: number | null,
  source: MachineSource<Pick<ArchiveInfo, 'contentBytes' | 'pausedMs'>>,
): Promise<ArchiveInfo> {
  const { key } = source
  const dir = copyDirOf(boxesDir, key)
  const existing = readCopy(dir)
  if (existing?.kind === 'fork') return toInfo(existing)
  await removeCopyDir(boxesDir, dir)
  return withFiles(boxesDir, { name: 'copying', uid, source }, async (staging, written) => {
    const { contentBytes, pausedMs } = written
    const record: CopyRecord = { kind: 'fork', uid, contentBytes, pausedMs }
    await writeAtomically(join(staging.dir, RECORD_FILE), JSON.stringify(record), { isDurable: true })
    await rename(staging.dir, dir)
    await syncDirectory(boxesDir)
    return toInfo(record)
  })
}

const toInfo = ({ contentBytes, pausedMs }: CopyRecord): ArchiveInfo => ({
  contentBytes,
  storedBytes: 0,
  pausedMs,
})

/** Makes the copy the machine of the box, without moving files. Returns false, with no effect, when there is no copy. */
export async function takeMachineCopy(boxesDir: string, boxId: string, key: ArchiveKey): Promise<boolean> {
  const dir = copyDirOf(boxesDir, key)
  const record = readCopy(dir)
  if (record?.kind !== 'fork') return false
  const paths = boxPaths(boxesDir, boxId)
  await writeMachine(boxPathsIn(dir), emptyMachine(boxId, record.uid))
  // Without a machine file, the directory is not a machine.
  await removeTree(paths.dir)
  await rename(dir, paths.dir)
  await syncDirectory(boxesDir)
  await rm(join(paths.dir, RECORD_FILE), { force: true })
  return true
}

/**
 * Moves the copy into the directories of a machine that runs. Continues an interrupted call. Returns false when the copy cannot be
 * moved into this machine: it stays complete. null: there is no copy.
 * @param isUntouched whether the machine has no files but those of its init
 */
export async function moveMachineCopy(
  boxesDir: string,
  machine: Machine,
  key: ArchiveKey,
  isUntouched: boolean,
): Promise<boolean | null> {
  const { boxId, uid, warm } = machine
  if (warm === WARM_STATES.filled) return true
  const dir = copyDirOf(boxesDir, key)
  const record = readCopy(dir)
  const isContinued = warm === WARM_STATES.filling
  if (record?.kind !== 'fork') return null
  if (record.uid !== uid || !(isUntouched || isContinued)) return false
  const paths = boxPaths(boxesDir, boxId)
  // From now on a part of the files may be in the machine only.
  await writeMachine(paths, { ...machine, warm: WARM_STATES.filling })
  if (!(await moveFiles(dir, paths.dir))) return false
  await writeMachine(paths, { ...machine, warm: WARM_STATES.filled })
  await removeCopyDir(boxesDir, dir)
  return true
}

/** Keeps the clone of a snapshot until it is removed: a coordinator that is killed finds it again. */
export async function keepClone(
  boxesDir: string,
  key: ArchiveKey,
  { parent, files: { uid }, pausedMs }: MachineClone,
  contentBytes: number,
): Promise<void> {
  const dir = copyDirOf(boxesDir, key)
  const record: CopyRecord = { kind: 'clone', uid, contentBytes, pausedMs }
  await writeAtomically(join(parent, RECORD_FILE), JSON.stringify(record), { isDurable: true })
  // The programs that read the clone enter its directory as the coordinator. Its user, which is that of the box, cannot.
  await chmod(parent, 0o700)
  await syncFiles(parent)
  await removeCopyDir(boxesDir, dir)
  await rename(parent, dir)
  await syncDirectory(boxesDir)
}

export type KeptClone = { dir: string; uid: number | null; info: ArchiveInfo }

/** The files of the copy of a fork are beside its record, as in a machine. null: there is no clone, or it has been removed. */
export function findClone(boxesDir: string, key: ArchiveKey): KeptClone | null {
  const dir = copyDirOf(boxesDir, key)
  const record = readCopy(dir)
  if (record?.kind !== 'clone') return null
  return { dir: join(dir, CLONE_FILES), uid: record.uid, info: toInfo(record) }
}

/** No-op when absent. An interrupted removal continues at the next start. */
export async function removeMachineCopy(boxesDir: string, key: ArchiveKey): Promise<void> {
  await removeCopyDir(boxesDir, copyDirOf(boxesDir, key))
}

export async function removeMachineCopies(boxesDir: string, workspaceId: string): Promise<void> {
  for (const name of await listCopyNames(boxesDir))
    if (name.startsWith(`${COPY_PREFIX}${workspaceId}-`)) await removeCopyDir(boxesDir, join(boxesDir, name))
}

async function removeCopyDir(boxesDir: string, dir: string): Promise<void> {
  if (!existsSync(dir)) return
  const parent = await mkdtemp(join(boxesDir, `${HIDDEN_PREFIX}removed-`))
  await rename(dir, join(parent, 'copy'))
  await removeTree(parent)
}

/** The users of the boxes that will take over the copies. */
export async function listCopyUids(boxesDir: string): Promise<number[]> {
  const records = (await listCopyNames(boxesDir)).map((name) => readCopy(join(boxesDir, name)))
  return records.flatMap((record) => record?.uid ?? [])
}

const listCopyNames = async (boxesDir: string): Promise<string[]> =>
  (await readdir(boxesDir)).filter((name) => name.startsWith(COPY_PREFIX))
