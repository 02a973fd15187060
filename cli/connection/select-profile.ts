// Selects the profile: by --profile or BOXWOOD_PROFILE, else the one of `box use`.
import { CliError, EXIT } from '../output/exit-codes.ts'
import { getProfilePath, type Profile, type Profiles, readProfiles } from './profile-file.ts'

/** The coordinator of a data directory on this machine, and the profile of its session. */
export const LOCAL = 'local'

type Environment = Record<string, string | undefined>

export const PROFILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

/** Applies --profile: replaces the variables that would take precedence. */
export function selectProfileByOption(name: string): void {
  process.env.BOXWOOD_PROFILE = name
  delete process.env.BOXWOOD_URL
  delete process.env.BOXWOOD_API_KEY
}

export type Selection = {
  /** null: the coordinator of a data directory on this machine. */
  profile: Profile | null
  /** What has selected the profile. */
  source: 'BOXWOOD_PROFILE' | 'box use' | null
}

/**
 * BOXWOOD_PROFILE takes precedence over BOXWOOD_DATA, and BOXWOOD_DATA over `box use`.
 * @throws CliError when there is no such profile
 */
export function selectProfile(env: Environment): Selection {
  if (env.BOXWOOD_PROFILE) return toSelection(env.BOXWOOD_PROFILE, 'BOXWOOD_PROFILE', env)
  if (env.BOXWOOD_DATA) return { profile: null, source: null }
  const { selected } = readProfiles(getProfilePath(env))
  return selected === null ? { profile: null, source: null } : toSelection(selected, 'box use', env)
}

function toSelection(name: string, source: 'BOXWOOD_PROFILE' | 'box use', env: Environment): Selection {
  return { profile: name === LOCAL ? null : findProfile(readProfiles(getProfilePath(env)), name), source }
}

/** @throws CliError */
export function findProfile({ profiles }: Profiles, name: string): Profile {
  const profile = profiles.find((candidate) => candidate.name === name)
  if (profile !== undefined) return profile
  const names = profiles.map((candidate) => candidate.name)
  throw new CliError(
    EXIT.notFound,
    `No such profile: '${name}'. ${names.length === 0 ? '' : `Profiles: ${names.join(', ')}. `}\`box login\` adds one.`,
    { code: 'no_such_profile' },
  )
}

/**
 * The profile `preferred` if it has the origin of `url`, else the first one that has it. Not `local`, whose credentials
 * belong to a data directory.
 */
export function findProfileByOrigin(
  { profiles }: Profiles,
  url: string,
  preferred: string | null,
): { profile: Profile; isPreferred: boolean } | null {
  const matching = profiles.filter((profile) => profile.name !== LOCAL && hasOrigin(profile, url))
  const profile = matching.find(({ name }) => name === preferred) ?? matching[0]
  return profile === undefined ? null : { profile, isPreferred: profile.name === preferred }
}

/** The sign-in at the coordinator of a data directory. */
export const findLocalProfile = ({ profiles }: Profiles, url: string): Profile | null =>
  profiles.find((profile) => profile.name === LOCAL && hasOrigin(profile, url)) ?? null

const hasOrigin = (profile: Profile, url: string): boolean =>
  new URL(profile.url).origin === new URL(url).origin
