// box login --with-key: stores an API key from stdin in a profile.
import type { Account } from '../../shared/api/account.ts'
import { createClient } from '../connection/client.ts'
import { parseKey, TYPED_URL } from '../connection/find-coordinator.ts'
import type { Profile } from '../connection/profile-file.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { createLineReader } from './read-line.ts'
import { assertCoordinator } from './sign-in.ts'

/** Checks the key with GET /me. @throws CliError */
export async function loginWithKey(
  { name, baseUrl }: { name: string; baseUrl: string },
  signal: AbortSignal,
): Promise<Profile> {
  await assertCoordinator(baseUrl, signal)
  const key = await readKey(signal)
  const config = { baseUrl, key, urlSource: TYPED_URL, keySource: 'the input' }
  const account = await createClient(config, signal).request<Account>('GET', '/me')
  return toProfile({ name, url: baseUrl, key }, account)
}

async function readKey(signal: AbortSignal): Promise<string> {
  const lines = createLineReader(signal)
  try {
    const text = await lines.ask('API key: ', { isHidden: true })
    if (text === '')
      throw new CliError(EXIT.usage, 'Write the API key to stdin: `box login --with-key <file`.')
    return parseKey(text, 'the input')
  } finally {
    lines.close()
  }
}

export function toProfile(
  fields: Pick<Profile, 'name' | 'url' | 'key'>,
  { user, workspace, key }: Account,
): Profile {
  return {
    ...fields,
    ...(key !== undefined && { keyId: key.id }),
    ...(key !== undefined && key.expiresAt !== null && { keyExpiresAt: key.expiresAt }),
    ...(user !== null && { user: user.email ?? user.name }),
    workspace: workspace.name,
  }
}
