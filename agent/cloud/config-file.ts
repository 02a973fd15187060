// Updates the block of profiles in ~/.aws/config. The AWS_CONFIG_FILE of the user is not considered.
import { join } from 'node:path'
import type { CloudProfile } from '../../shared/api/cloud-credentials.ts'
import { ApiError } from '../../shared/errors.ts'
import { createParents } from '../files/create-parents.ts'
import { nullIfMissing } from '../files/paths.ts'
import { openForReading, readEntireFile } from '../files/read.ts'
import { type WriteDeps, writeFile } from '../files/write.ts'
import { updateBlock } from './config-block.ts'

/** In the home directory. */
export const CONFIG_PATH = '.aws/config'

const MAX_CONFIG_BYTES = 1024 * 1024
const MAX_BLOCK_BYTES = 64 * 1024
/** The encoding in which each byte is one character. */
const BYTES = 'latin1'

/**
 * Follows a symbolic link at the path, and writes only what changes: an editor of the user may have the file open.
 * @param tokenPath absolute
 * @returns the names of the profiles that are not in the block, because the user has defined them
 * @throws ApiError and system errors; the file is then unchanged
 */
export async function updateConfigFile(
  profiles: readonly CloudProfile[],
  tokenPath: string,
  deps: WriteDeps,
): Promise<string[]> {
  const path = join(deps.home, CONFIG_PATH)
  const old = await readConfig(path, deps.stateDir)
  const { text, userDefined } = updateBlock(old ?? '', profiles, tokenPath)
  if (text === (old ?? '')) return userDefined
  await createParents(path, deps.stateDir)
  const bytes = Buffer.from(text, BYTES)
  const body = (async function* () {
    yield bytes
  })()
  const mode = old === null ? 0o600 : undefined
  const limit = MAX_CONFIG_BYTES + MAX_BLOCK_BYTES
  await writeFile({ path, body, length: bytes.length, limit, mode }, deps)
  return userDefined
}

/** null: there is no file. */
async function readConfig(path: string, stateDir: string): Promise<string | null> {
  const file = await nullIfMissing(openForReading(path, stateDir))
  if (file === null) return null
  try {
    if (!file.stat.isFile()) throw new ApiError('invalid_path', `${path} is not a file. Remove or rename it.`)
    const bytes = await readEntireFile(file.handle, file.stat.size, MAX_CONFIG_BYTES + MAX_BLOCK_BYTES)
    if (bytes !== null) return bytes.toString(BYTES)
    throw new ApiError('payload_too_large', `${path} is larger than 1 MiB. Make it smaller.`)
  } finally {
    await file.handle.close()
  }
}
