// Captures the files of a machine in an archive. The processes of a running machine are paused meanwhile.

import type { Archives } from '../parts/archives/archives.ts'
import type { BoxQueue } from '../parts/box-queue.ts'
import {
  type ArchiveContents,
  type ArchiveInfo,
  type ArchiveKey,
  PermanentProviderError,
} from '../provider.ts'
import { boxPaths } from './machine-file.ts'
import type { RegionMachines } from './prepare-machine.ts'
import { ARCHIVE_ROOTS } from './restore-machine.ts'

/** @param queue runs the calls that change the machine */
export async function captureMachine(
  { boxesDir, machines }: RegionMachines,
  { archives, queue }: { archives: Archives; queue: BoxQueue },
  boxId: string,
  archive: ArchiveKey,
  contents: ArchiveContents,
  signal: AbortSignal,
): Promise<ArchiveInfo> {
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
    return await archives.capture(files, archive, {
      pause: machine.init === null ? undefined : pause,
      verify,
      signal: AbortSignal.any([signal, interruption.signal]),
    })
  } finally {
    machines.endCapture(boxId)
  }
}
