// Signs out: revokes the machine key, ends the session and removes the profile.

import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { getRootUrl } from '../connection/find-coordinator.ts'
import {
  getProfilePath,
  type Profile,
  readProfiles,
  removeProfile,
  updateProfiles,
} from '../connection/profile-file.ts'
import { findProfile, LOCAL, selectProfile } from '../connection/select-profile.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr } from '../output/print.ts'
import { endProfile } from './machine-key.ts'

/** The user waits, and the profile is removed in any case. */
const TIMEOUT_MS = 10_000

/** Returns the exit code. @param name undefined: the selected profile @throws CliError */
export async function logout(
  name: string | undefined,
  { json, quiet }: JsonOption & QuietOption,
  signal: AbortSignal,
): Promise<number> {
  const path = getProfilePath(process.env)
  const profile = findProfile(readProfiles(path), name ?? selectProfile(process.env).profile?.name ?? LOCAL)
  const failures = await end(profile, signal)
  updateProfiles(path, (file) => removeProfile(file, profile.name))
  const root = getRootUrl(profile.url)
  if (failures.length > 0) printMessage(describeFailures(profile, failures))
  if (json) printJson({ profile: { name: profile.name, url: profile.url }, ended: failures.length === 0 })
  else if (!quiet) printStderr(`Signed out of ${root}. The profile ${profile.name} was removed.`)
  return failures.length > 0 ? EXIT.failed : EXIT.ok
}

async function end(profile: Profile, signal: AbortSignal): Promise<CliError[]> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  try {
    return await endProfile(profile, AbortSignal.any([signal, timeout]))
  } catch (error) {
    if (!timeout.aborted || signal.aborted) throw error
    return [new CliError(EXIT.unreachable, 'The coordinator does not respond.')]
  }
}

function describeFailures({ keyId }: Profile, failures: readonly CliError[]): string {
  const remaining = keyId === undefined ? 'the session' : `the key ${keyId} or the session`
  const revoke =
    keyId === undefined ? '' : ` To revoke the key, sign in again and use \`box keys rm ${keyId}\`.`
  return `warning: ${remaining} may still be valid: ${failures[0]?.message}${revoke}`
}
