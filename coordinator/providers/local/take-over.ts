// Moves the directory of a stopped box to another region on the same file system.
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { syncDirectory } from '../../base/sync-directory.ts'
import { boxPaths } from './machine-file.ts'

export type TakeOverOptions = {
  boxId: string
  /** The boxes directory of the region that has the machine. */
  sourceDir: string
  boxesDir: string
  log: Record<'debug' | 'warn', (fields: object, message: string) => void>
}

/** Returns whether the machine is in this region only. Else this call has had no effect. */
export async function takeMachineOver({
  boxId,
  sourceDir,
  boxesDir,
  log,
}: TakeOverOptions): Promise<boolean> {
  const [from, to] = [boxPaths(sourceDir, boxId).dir, boxPaths(boxesDir, boxId).dir]
  if (!existsSync(from)) return existsSync(to)
  // An earlier move has left an incomplete machine, which a copy of the files replaces.
  if (existsSync(to)) return false
  try {
    await rename(from, to)
  } catch (err) {
    // The error is EXDEV, for example: the regions have different file systems.
    log.debug({ err, boxId }, 'the files of the box must be copied')
    return false
  }
  // From here on this directory has the only copy: an error must not end the move in the old region.
  await Promise.all([syncDirectory(boxesDir), syncDirectory(sourceDir)]).catch((err: unknown) =>
    log.warn({ err, boxId }, 'failed to make the move of a box durable'),
  )
  log.debug({ boxId }, 'machine taken over from another region')
  return true
}
