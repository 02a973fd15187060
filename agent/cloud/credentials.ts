// Applies the cloud credentials of the box: writes its token and its profiles, or removes them.
import { join } from 'node:path'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import {
  type CloudCredentials,
  type CloudCredentialsResponse,
  cloudCredentialsSchema,
} from '../../shared/api/cloud-credentials.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { toFileError } from '../files/errors.ts'
import { createTempFileSweeper } from '../files/temp-file.ts'
import type { WriteDeps } from '../files/write.ts'
import { validateRequest } from '../validate-request.ts'
import type { UserDefined } from './config-block.ts'
import { CONFIG_PATH, updateConfigFile } from './config-file.ts'
import { getTokenPath, removeToken, writeToken } from './token-file.ts'

export type CloudDeps = {
  home: string
  /** Real path of the agent's state directory. */
  stateDir: string
  clock: Clock
  log: Logger
}

export type CloudCredentialFiles = {
  /** @throws ApiError for a body that is not valid, and when the token could not be removed */
  apply(body: unknown): Promise<CloudCredentialsResponse>
  /** Removes the token and the profiles. */
  remove(): Promise<unknown>
}

/** Requests are applied in the order of their arrival, because each has the complete state. */
export function createCloudCredentials(deps: CloudDeps): CloudCredentialFiles {
  const limit = pLimit(1)
  const writeDeps = { ...deps, sweepTempFiles: createTempFileSweeper(deps.clock) }
  const apply = (body: unknown) => limit(() => applyCredentials(parseCredentials(body, deps.home), writeDeps))
  return { apply, remove: () => apply({ token: null, profiles: [] }) }
}

/** The schema excludes all characters that end a line or a section. @throws ApiError invalid_request */
function parseCredentials(body: unknown, home: string): CloudCredentials {
  const credentials = validateRequest(cloudCredentialsSchema, body)
  const { profiles, token } = credentials
  if (new Set(profiles.map(({ name }) => name)).size < profiles.length)
    throw new ApiError('invalid_request', 'body.profiles must not contain a name twice.')
  if (token === null && profiles.length > 0)
    throw new ApiError('invalid_request', 'body.token is required with profiles.')
  if (profiles.length > 0 && /[\r\n]|\s[#;]/.test(home))
    throw new ApiError(
      'invalid_request',
      'The path of the home directory contains characters that ~/.aws/config cannot have.',
    )
  return credentials
}

/**
 * The failure of one file does not prevent the other: a profile whose role is disconnected must go, also when the disk is too full
 * for a new token.
 * @throws ApiError when the token could not be removed
 */
async function applyCredentials(
  { token, profiles }: CloudCredentials,
  deps: WriteDeps,
): Promise<CloudCredentialsResponse> {
  const { home } = deps
  const tokenPath = getTokenPath(home)
  const tokenError = await catchFileError(tokenPath, () =>
    token === null ? removeToken(home) : writeToken(home, token.content),
  )
  let userDefined: UserDefined[] = []
  const configError = await catchFileError(join(home, CONFIG_PATH), async () => {
    userDefined = await updateConfigFile(profiles, tokenPath, deps)
  })
  if (tokenError !== null && profiles.length === 0) throw tokenError
  const error = tokenError ?? configError
  if (error !== null) {
    // Without a token, profiles that could not be removed are of no use.
    const names = profiles.length === 0 ? [`~/${CONFIG_PATH}`] : profiles.map(({ name }) => name)
    return { written: [], failed: names.map((name) => ({ name, message: error.message })) }
  }
  const isUserDefined = (name: string) => userDefined.some((profile) => profile.name === name)
  return {
    written: profiles.map(({ name }) => name).filter((name) => !isUserDefined(name)),
    failed: userDefined.map(({ name, file }) => ({
      name,
      message: `${file} defines the profile ${name} already. Rename it there, or connect the role with another profile.`,
    })),
  }
}

/** Returns errors of the file system, and throws others. */
async function catchFileError(path: string, work: () => Promise<void>): Promise<ApiError | null> {
  try {
    await work()
    return null
  } catch (error) {
    const fileError = toFileError(error, path)
    if (fileError instanceof ApiError) return fileError
    throw error
  }
}
