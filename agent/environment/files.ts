// PUT /environment-files: writes the secret files of the environment of the box, and removes those of an earlier version.
import { chmod, realpath, stat, unlink } from 'node:fs/promises'
import {
  type AgentFilesRequest,
  type AgentFilesResponse,
  agentFilesRequestSchema,
} from '../../shared/api/environment-delivery.ts'
import { parseFileMode } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createParents } from '../files/create-parents.ts'
import type { CredentialFiles } from '../files/credential-files.ts'
import { getSystemErrorCode, toFileError } from '../files/errors.ts'
import { nullIfMissing, resolvePath, resolveWriteTarget } from '../files/paths.ts'
import { checkWritable } from '../files/state-access.ts'
import { type WriteDeps, writeFile } from '../files/write.ts'
import { validateRequest } from '../validate-request.ts'

export type SecretFileDeps = WriteDeps & { credentialFiles: Pick<CredentialFiles, 'addSecretFile'> }

type EnvironmentFile = AgentFilesRequest['write'][number]

/** A file that cannot be written or removed does not prevent the others. */
export async function applyFiles(body: unknown, deps: SecretFileDeps): Promise<AgentFilesResponse> {
  const { write, remove } = validateRequest(agentFilesRequestSchema, body)
  const failed: AgentFilesResponse['failed'] = []
  const attempt = async (path: string, work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      const fileError = toFileError(error, path)
      if (!(fileError instanceof ApiError)) throw error
      failed.push({ path, message: fileError.message })
    }
  }
  for (const path of remove) await attempt(path, () => removeFile(path, deps))
  for (const { path } of write) deps.credentialFiles.addSecretFile(path)
  for (const file of write) await attempt(file.path, () => writeOne(file, deps))
  return { failed }
}

async function writeOne({ path: requested, mode, contentBase64 }: EnvironmentFile, deps: WriteDeps) {
  const path = resolvePath(deps.home, requested)
  const permissions = parseFileMode(mode)
  await createParents(path, deps.stateDir)
  await restrictExisting(path, permissions, deps.stateDir)
  const bytes = Buffer.from(contentBase64, 'base64')
  const body = (async function* () {
    yield bytes
  })()
  await writeFile(
    { path, body, length: bytes.length, limit: LIMITS.inlineFileBytes, mode: permissions },
    deps,
  )
}

/**
 * Where a file cannot be replaced, its content is: readers that the new mode excludes must not see it meanwhile. Also makes a file
 * without write permission writable for its owner.
 */
async function restrictExisting(path: string, mode: number, stateDir: string): Promise<void> {
  const target = await resolveWriteTarget(path)
  checkWritable(target, stateDir)
  const old = await nullIfMissing(stat(target))
  if (old === null || !old.isFile()) return
  const restricted = (old.mode & mode & 0o777) | 0o200
  if (restricted === (old.mode & 0o777)) return
  await chmod(target, restricted).catch((error: unknown) => {
    // The file of another user, which this one may be allowed to write.
    if (getSystemErrorCode(error) !== 'EPERM') throw error
  })
}

/** Of a symbolic link, removes the file, which has the content. */
async function removeFile(requested: string, { home, stateDir }: WriteDeps): Promise<void> {
  const path = await nullIfMissing(realpath(resolvePath(home, requested)))
  if (path === null) return
  checkWritable(path, stateDir)
  await unlink(path)
}
