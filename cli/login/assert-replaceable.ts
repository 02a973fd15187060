// Protects a profile against being replaced by that of another user or coordinator.

import type { Profile } from '../connection/profile-file.ts'
import { LOCAL } from '../connection/select-profile.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import type { Target } from './target.ts'

/** @param user null: unknown yet @throws CliError when the profile is that of another user or coordinator */
export function assertReplaceable(
  profile: Profile | undefined,
  { name, baseUrl }: Pick<Target, 'name' | 'baseUrl'>,
  user: string | null,
): void {
  // The profile `local` has the last sign-in at a coordinator on this machine.
  if (profile === undefined || name === LOCAL) return
  const isOtherUrl = new URL(profile.url).origin !== new URL(baseUrl).origin
  const isOtherUser = user !== null && profile.user?.includes('@') && profile.user !== user.toLowerCase()
  if (isOtherUrl || isOtherUser)
    throw new CliError(
      EXIT.failed,
      `The profile ${name} exists, for ${isOtherUrl ? new URL(profile.url).origin : profile.user}. ` +
        `Choose another name with --profile, or remove the profile with \`box logout ${name}\`.`,
      { code: 'profile_exists' },
    )
}
