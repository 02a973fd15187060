// Updates the block of profiles in ~/.aws/config. The AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE of the user are not
// considered.
import { join } from 'node:path'
import type { CloudProfile } from '../../shared/api/cloud-credentials.ts'
import { ApiError } from '../../shared/errors.ts'
import { createParents } from '../files/create-parents.ts'
import { nullIfMissing } from '../files/paths.ts'
import { openForReading, readEntireFile } from '../files/read.ts'
import { type WriteDeps, writeFile } from '../files/write.ts'
import { type UserDefined, updateBlock } from './config-block.ts'

/** In the home directory. */
export const CONFIG_PATH = '.aws/config'
const CREDENTIALS_PATH = '.aws/credentials'

const MAX_CONFIG_BYTES = 1024 * 1024
const MAX_BLOCK_BYTES = 64 * 1024
/** The encoding in which each byte is one character. */
const BYTES = 'latin1'

/**
 * Follows a symbolic link at the path, and writes only what changes: an editor of the user may have the file open.
 * @param tokenPath absolute
 * @returns the profiles that are not in the block, because the user has defined them
 * @throws ApiError and system errors; the file is then unchanged
 */
export async function updateConfigFile(
  profiles: readonly CloudProfile[],
  tokenPath: string,
  deps: WriteDeps,
): Promise<UserDefined[]> {
  const path = join(deps.home, CONFIG_PATH)
  const old = await readConfig(path, deps.stateDir)
  const credentials = profiles.length === 0 ? '' : await readCredentials(deps)
  const { text, userDefined } = updateBlock(old ?? '', profiles, tokenPath, credentials)
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

/** Empty for a file that the agent cannot read: programs of the box user cannot read it either. */
async function readCredentials({ home, stateDir, log }: WriteDeps): Promise<string> {
  const path = join(home, CREDENTIALS_PATH)
  try {
    return (await readConfig(path, stateDir)) ?? ''
  } catch (err) {
    log.warn({ err, path }, 'cannot read the AWS credentials of the user; their profiles are not considered')
    return ''
  }
}

/** null: there is no file. */
async function readConfig(path: string, stateDir: string): Promise<string | null> {
  const file = await nullIfMissing(openForReading(path, { stateDir, credentials: null }))
  if (file === null) return null
  try {
    if (!file.stat.isFile()) throw new ApiError('invalid_path', `${path} is not a file. Remove or rename it.`)
    const bytes = await readEntireFile(file, MAX_CONFIG_BYTES + MAX_BLOCK_BYTES)
    if (bytes !== null) return bytes.toString(BYTES)
    throw new ApiError('payload_too_large', `${path} is larger than 1 MiB. Make it smaller.`)
  } finally {
    await file.handle.close()
  }
}
