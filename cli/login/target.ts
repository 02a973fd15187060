// Finds the coordinator to sign in to, how to sign in, and the name of the profile.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assertRunning } from '../connection/coordinator-record.ts'
import { type Environment, findLocalCoordinator, parseBaseUrl } from '../connection/find-coordinator.ts'
import type { Profile } from '../connection/profile-file.ts'
import { LOCAL, PROFILE_NAME, selectProfile } from '../connection/select-profile.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'

export type Target = {
  /** The name of the profile. */
  name: string
  baseUrl: string
  /** The content and the path of sign-in.key, which signs in the owner; null: sign in by email or with a key. */
  signInKey: { secret: string; path: string } | null
}

export type TargetOptions = { email?: string; withKey?: boolean }

/**
 * The URL, else BOXWOOD_URL, else the selected profile, else the coordinator of the data directory on this machine.
 * BOXWOOD_PROFILE names the profile; the default is the host of the URL, and `local` for the owner on this machine.
 * @throws CliError
 */
export function findTarget(
  url: string | undefined,
  options: TargetOptions,
  env: Environment,
  cwd: string,
): Target {
  const { baseUrl, profile, signInKey } = findSignIn(url, options, env, cwd)
  const defaultName = profile?.name ?? (signInKey === null ? getDefaultName(baseUrl) : LOCAL)
  const target = { name: env.BOXWOOD_PROFILE || defaultName, baseUrl, signInKey }
  checkName(target)
  return target
}

/** How to sign in at a URL, without a profile to store. @throws CliError */
export function findSignIn(url: string | undefined, options: TargetOptions, env: Environment, cwd: string) {
  const { baseUrl, profile } = findUrl(url, env, cwd)
  // Another profile with an email is that of a member: not the owner's sign-in.
  const isMember = profile !== null && profile.name !== LOCAL && profile.user?.includes('@')
  const isOwner = !options.email && !options.withKey && !isMember
  return { baseUrl, profile, signInKey: isOwner ? readSignInKey(baseUrl, env, cwd) : null }
}

function findUrl(url: string | undefined, env: Environment, cwd: string) {
  const typed = url ?? env.BOXWOOD_URL
  if (typed)
    return { baseUrl: parseBaseUrl(typed, url === undefined ? 'BOXWOOD_URL' : 'The URL'), profile: null }
  const { profile } = selectProfile(env)
  if (profile !== null) return { baseUrl: profile.url, profile }
  return {
    baseUrl: findLocalCoordinator(env, cwd, DEFAULT_DATA_PARENT).baseUrl,
    profile: null as Profile | null,
  }
}

/** null: the coordinator at `baseUrl` does not run on this machine, or another user has started it. */
function readSignInKey(baseUrl: string, env: Environment, cwd: string): Target['signInKey'] {
  try {
    const local = findLocalCoordinator(env, cwd, DEFAULT_DATA_PARENT)
    if (new URL(local.baseUrl).origin !== new URL(baseUrl).origin) return null
    assertRunning(local.dataDir, local.url)
    const path = join(local.dataDir, 'sign-in.key')
    return { secret: readFileSync(path, 'utf8').trim(), path }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (error instanceof CliError || ['ENOENT', 'EACCES', 'ECONNREFUSED'].includes(String(code))) return null
    throw error
  }
}

/** The host of the URL, with its port if that is not the default one: `boxwood.example.com`, `192.0.2.1-7070`. */
const getDefaultName = (baseUrl: string): string =>
  new URL(baseUrl).host
    .replace(/^\[|\]/g, '')
    .replaceAll(':', '-')
    .replace(/^-+/, 'ip6-')

function checkName({ name, signInKey, baseUrl }: Target): void {
  if (!PROFILE_NAME.test(name))
    throw new CliError(
      EXIT.usage,
      'The name of a profile must be 1 to 64 letters, digits, dots, hyphens, underscores and @, and start with a letter or digit.',
    )
  if (name === LOCAL && signInKey === null)
    throw new CliError(
      EXIT.usage,
      `The profile ${LOCAL} is for the owner of a coordinator on this machine. Choose another name for ${new URL(baseUrl).origin} with --profile.`,
    )
}
