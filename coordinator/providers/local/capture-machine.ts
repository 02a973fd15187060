// Reads the files of a machine for an archive or a copy. The processes of a running machine are paused meanwhile.

import type { Archives, CaptureOptions } from '../parts/archives/archives.ts'
import type { BoxFiles } from '../parts/archives/tar.ts'
import type { BoxQueue } from '../parts/box-queue.ts'
import { type ArchiveContents, PermanentProviderError } from '../provider.ts'
import { cloneMachine, type MachineClone } from './clone-machine.ts'
import { boxPaths } from './machine-file.ts'
import type { RegionMachines } from './prepare-machine.ts'
import { ARCHIVE_ROOTS } from './restore-machine.ts'

export type MachineReading = {
  boxId: string
  contents: ArchiveContents
  signal: AbortSignal
  /** Runs the calls that change the machine. */
  queue: BoxQueue
  archives: Archives
  /** The file system of the boxes can clone files. */
  canClone: boolean
}

/** @param clone of which `files` are; null: they are those of the machine. It is removed afterwards, unless it was renamed. */
export type ReadMachine<Info> = (
  files: BoxFiles,
  options: CaptureOptions,
  clone: MachineClone | null,
) => Promise<Info>

/** @param read reads the files */
export async function captureMachine<Info>(
  { host, boxesDir, machines }: RegionMachines,
  { boxId, contents, signal, queue, archives, canClone }: MachineReading,
  read: ReadMachine<Info>,
): Promise<Info> {
  const interruption = new AbortController()
  const machine = await queue.run(boxId, () => machines.beginCapture(boxId, interruption))
  if (machine === null)
    throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
  const files = { dir: boxPaths(boxesDir, boxId).dir, roots: ARCHIVE_ROOTS[contents], uid: machine.uid }
  const pause = () => queue.run(boxId, () => machines.pause(boxId, interruption))
  const verify = () => {
    machines.endCapture(boxId)
    interruption.signal.throwIfAborted()
  }
  const options: CaptureOptions = {
    pause: machine.init === null ? undefined : pause,
    verify,
    signal: AbortSignal.any([signal, interruption.signal]),
  }
  try {
    // At level process, the running box could stop or change the programs that read the clone, which have its user.
    if (canClone && machine.init !== null && machine.level !== 'process') {
      const clone = await cloneMachine(archives, files, options, (err) =>
        host.options.log.debug({ boxId, err }, 'the files of the box are read without a clone'),
      )
      if (clone !== null) return await readClone(clone, signal, read)
    }
    return await read(files, options, null)
  } finally {
    machines.endCapture(boxId)
  }
}

async function readClone<Info>(
  clone: MachineClone,
  signal: AbortSignal,
  read: ReadMachine<Info>,
): Promise<Info> {
  try {
    return await read(clone.files, { pausedMs: clone.pausedMs, signal }, clone)
  } finally {
    await clone.remove()
  }
}
