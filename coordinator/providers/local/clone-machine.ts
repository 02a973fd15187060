// Clones the files of a running machine where the file system shares the content of files (reflinks), such as XFS and Btrfs.
// The processes are paused for the clone only: the archive or the copy is made from it afterwards.
import { constants, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Archives, CaptureOptions } from '../parts/archives/archives.ts'
import { createMeasuredPause } from '../parts/archives/measured-pause.ts'
import type { BoxFiles } from '../parts/archives/tar.ts'
import { createOwnedDirectory, HIDDEN_PREFIX, removeTree } from './directories.ts'

/** The directory of the files. */
export const CLONE_FILES = 'files'

/** Whether the file system can clone files. */
export async function hasReflinks(dir: string): Promise<boolean> {
  const probe = await mkdtemp(join(dir, `${HIDDEN_PREFIX}reflink-probe-`))
  try {
    await writeFile(join(probe, 'file'), 'content')
    await copyFile(join(probe, 'file'), join(probe, 'clone'), constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch {
    return false
  } finally {
    await rm(probe, { recursive: true, force: true })
  }
}

export type MachineClone = {
  /** Contains the directory of the files. */
  parent: string
  files: BoxFiles
  pausedMs: number | null
  remove(): Promise<void>
}

/**
 * Returns null where the files cannot be cloned: they are read while the machine is paused. The directory of an interrupted
 * clone is removed at the next start.
 */
export async function cloneMachine(
  archives: Archives,
  files: BoxFiles,
  { pause, verify, signal }: CaptureOptions,
  onFailure: (error: unknown) => void,
): Promise<MachineClone | null> {
  const parent = await mkdtemp(join(dirname(files.dir), `${HIDDEN_PREFIX}clone-`))
  const measuredPause = createMeasuredPause(pause)
  const clone = { ...files, dir: join(parent, CLONE_FILES) }
  try {
    await createOwnedDirectory(parent, clone.dir, files.uid)
    await measuredPause.start()
    // The user of the box may not enter the directories above the boxes directory.
    await archives.clone(files, join('..', basename(parent), CLONE_FILES), signal)
    const pausedMs = await measuredPause.end()
    verify?.()
    return { parent, files: clone, pausedMs, remove: () => removeTree(parent) }
  } catch (error) {
    await measuredPause.end()
    await removeTree(parent)
    signal?.throwIfAborted()
    onFailure(error)
    return null
  }
}
