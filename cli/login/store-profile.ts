// Stores the profile of a sign-in, and selects it.

import { isLoopback } from '../../shared/loopback.ts'
import { getRootUrl } from '../connection/find-coordinator.ts'
import { getProfilePath, type Profile, putProfile, updateProfiles } from '../connection/profile-file.ts'
import { LOCAL } from '../connection/select-profile.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'

/** @throws CliError */
export function storeProfile(profile: Profile): void {
  updateProfiles(getProfilePath(process.env), (file) => ({
    ...putProfile(file, profile),
    selected: profile.name === LOCAL ? null : profile.name,
  }))
}

export function printSignedIn(profile: Profile, { json, quiet }: { json?: boolean; quiet?: boolean }): void {
  const { name, url, user = null, workspace = null } = profile
  if (json) printJson({ profile: { name, url, user, workspace } })
  else if (!quiet)
    printStderr(
      `Signed in to ${getRootUrl(url)} as ${sanitize(user ?? 'a key with no user')}, workspace ${sanitize(workspace ?? '-')}. ` +
        `box uses the profile ${name} from now on.`,
    )
  const variables = ['BOXWOOD_URL', 'BOXWOOD_API_KEY', ...(name === LOCAL ? [] : ['BOXWOOD_DATA'])]
  const variable = variables.find((candidate) => process.env[candidate])
  if (variable !== undefined)
    printMessage(`${variable} is set, and takes precedence over the profile. Unset it to use the profile.`)
}

export function warnUnlessEncrypted(baseUrl: string): void {
  const { protocol, hostname, origin } = new URL(baseUrl)
  if (protocol === 'http:' && !isLoopback(hostname))
    printMessage(
      `warning: the connection to ${origin} is not encrypted: others on the network can read the credentials. Use https://.`,
    )
}
