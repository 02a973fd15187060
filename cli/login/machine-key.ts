// The key that box uses on this machine: created by a sign-in, revoked by the next one and by box logout.
import { hostname } from 'node:os'
import type { KeyWithSecret } from '../../shared/api/keys.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createApiRequests } from '../connection/api-requests.ts'
import { assertLocalRunning, formatProfileSource } from '../connection/find-coordinator.ts'
import type { Profile } from '../connection/profile-file.ts'
import { LOCAL } from '../connection/select-profile.ts'
import { CliError } from '../output/exit-codes.ts'
import { printMessage } from '../output/print.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'
import type { NewSession } from './sign-in.ts'

/** Creates a machine key by the session, unless the coordinator refuses. The profile has both. */
export async function createProfile(
  { name, url }: Pick<Profile, 'name' | 'url'>,
  { cookie, session, user, workspace }: NewSession,
  { needsKey }: { needsKey: boolean },
  signal: AbortSignal,
): Promise<Profile> {
  const profile: Profile = {
    name,
    url,
    session: cookie,
    sessionExpiresAt: session.expiresAt,
    user: user.email ?? user.name,
    workspace: workspace.name,
  }
  if (!needsKey) return profile
  try {
    const { key, secret } = await requestBySession<KeyWithSecret>(profile, signal, 'POST', '/keys', {
      name: `box on ${hostname()}`.slice(0, LIMITS.keyNameChars),
      kind: 'machine',
    })
    return {
      ...profile,
      key: secret,
      keyId: key.id,
      ...(key.expiresAt !== null && { keyExpiresAt: key.expiresAt }),
    }
  } catch (error) {
    if (signal.aborted || !(error instanceof CliError)) throw error
    printMessage(
      `warning: the coordinator has created no API key, so that commands on boxes do not work: ${error.message}`,
    )
    return profile
  }
}

export const requestBySession = <T>(
  profile: Profile,
  signal: AbortSignal,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> => {
  const config = {
    baseUrl: profile.url,
    key: null,
    urlSource: formatProfileSource(profile.name),
    keySource: '',
    profile,
    ...(profile.name === LOCAL && {
      assertRunning: () => assertLocalRunning(profile.url, process.env, process.cwd(), DEFAULT_DATA_PARENT),
    }),
  }
  return createApiRequests(config, { signal }).json<T>(method, `/api/v1${path}`, { body })
}

/**
 * Revokes the machine key of a profile that a sign-in has created, and ends its session. An API key that was stored with
 * `box login --with-key` stays valid. Returns the failures.
 * @param by has a session of the same user that revokes the key; default: the profile itself
 */
export async function endProfile(profile: Profile, signal: AbortSignal, by = profile): Promise<CliError[]> {
  if (profile.session === undefined) return []
  const failures: CliError[] = []
  const attempt = async (path: string, session: Profile) => {
    try {
      await requestBySession(session, signal, 'DELETE', path)
    } catch (error) {
      if (signal.aborted || !(error instanceof CliError)) throw error
      if (error.code !== 'not_found') failures.push(error)
    }
  }
  if (profile.keyId !== undefined) await attempt(`/keys/${encodeURIComponent(profile.keyId)}`, by)
  await attempt('/session', profile)
  return failures
}
