// Reads the files of a machine for an archive or a copy. The processes of a running machine are paused meanwhile.

import type { CaptureOptions } from '../parts/archives/archives.ts'
import type { BoxFiles } from '../parts/archives/tar.ts'
import type { BoxQueue } from '../parts/box-queue.ts'
import { type ArchiveContents, PermanentProviderError } from '../provider.ts'
import { boxPaths } from './machine-file.ts'
import type { RegionMachines } from './prepare-machine.ts'
import { ARCHIVE_ROOTS } from './restore-machine.ts'

export type MachineReading = {
  boxId: string
  contents: ArchiveContents
  signal: AbortSignal
  /** Runs the calls that change the machine. */
  queue: BoxQueue
}

/** @param read reads the files */
export async function captureMachine<Info>(
  { boxesDir, machines }: RegionMachines,
  { boxId, contents, signal, queue }: MachineReading,
  read: (files: BoxFiles, options: CaptureOptions) => Promise<Info>,
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
  try {
    return await read(files, {
      pause: machine.init === null ? undefined : pause,
      verify,
      signal: AbortSignal.any([signal, interruption.signal]),
    })
  } finally {
    machines.endCapture(boxId)
  }
}
