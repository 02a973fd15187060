// Creates the missing directories above a file that the coordinator lets the agent write.
import { mkdir, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { getSystemErrorCode } from './errors.ts'
import { nullIfMissing } from './paths.ts'
import { checkWritable } from './state-access.ts'

/**
 * Creates the missing directories above the path with the mode 0700, one after the other: mkdir() with `recursive` does not return
 * in /proc.
 */
export async function createParents(path: string, stateDir: string): Promise<void> {
  const dir = dirname(path)
  const real = await nullIfMissing(realpath(dir))
  if (real !== null) return checkWritable(real, stateDir)
  await createParents(dir, stateDir)
  await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
    if (getSystemErrorCode(error) !== 'EEXIST') throw error
  })
}
