// Signs in to a coordinator, and stores the credentials in a profile.
import { getProfilePath, type Profile, readProfiles } from '../connection/profile-file.ts'
import { LOCAL } from '../connection/select-profile.ts'
import { assertReplaceable } from './assert-replaceable.ts'
import { loginWithKey } from './login-with-key.ts'
import { createProfile, endProfile } from './machine-key.ts'
import { isOwnerKeyValid } from './owner-key.ts'
import { signInAsOwner, signInByEmail } from './sign-in.ts'
import { printSignedIn, storeProfile, warnUnlessEncrypted } from './store-profile.ts'
import { findTarget, type Target, type TargetOptions } from './target.ts'

export type LoginOptions = TargetOptions & { json?: boolean; quiet?: boolean }

/** @param url undefined: the coordinator that box uses @throws CliError */
export async function login(
  url: string | undefined,
  options: LoginOptions,
  signal: AbortSignal,
): Promise<void> {
  const profiles = readProfiles(getProfilePath(process.env))
  const target = findTarget(url, options, process.env, process.cwd())
  const previous = profiles.profiles.find(({ name }) => name === target.name)
  const email = options.email ?? (previous?.user?.includes('@') ? previous.user : undefined)
  assertReplaceable(previous, target, options.withKey ? null : (email ?? null))
  warnUnlessEncrypted(target.baseUrl)
  const profile = await signIn(target, { ...options, ...(email !== undefined && { email }) }, signal)
  storeProfile(profile)
  printSignedIn(profile, options)
  // A failure leaves a key that expires by itself.
  if (previous !== undefined && previous.url === profile.url)
    await endProfile(previous, signal, profile.session === undefined ? previous : profile)
}

async function signIn(
  target: Target,
  { withKey, email }: TargetOptions,
  signal: AbortSignal,
): Promise<Profile> {
  if (withKey) return loginWithKey(target, signal)
  const { name, baseUrl, signInKey } = target
  if (signInKey === null) {
    const session = await signInByEmail(target, email, signal)
    return createProfile({ name, url: baseUrl }, session, { needsKey: true }, signal)
  }
  const usesOwnerKey =
    name === LOCAL && (await isOwnerKeyValid({ baseUrl, signInKeyPath: signInKey.path }, signal))
  const session = await signInAsOwner(target, signInKey, signal)
  return createProfile({ name, url: baseUrl }, session, { needsKey: !usesOwnerKey }, signal)
}
