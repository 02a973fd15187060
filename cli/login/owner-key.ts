// Whether the API key that the coordinator has stored in its data directory works: it may be revoked or replaced.
import { dirname } from 'node:path'
import { createApiRequests } from '../connection/api-requests.ts'
import { getOwnerKeyFile, parseKey, readOwnerKey } from '../connection/find-coordinator.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** @param signInKeyPath in the data directory @throws CliError when the coordinator does not respond */
export async function isOwnerKeyValid(
  { baseUrl, signInKeyPath }: { baseUrl: string; signInKeyPath: string },
  signal: AbortSignal,
): Promise<boolean> {
  const dataDir = dirname(signInKeyPath)
  const keySource = getOwnerKeyFile(dataDir)
  try {
    const key = readOwnerKey(dataDir)
    if (key === null) return false
    const config = { baseUrl, key: parseKey(key, keySource), urlSource: 'the URL', keySource }
    await createApiRequests(config, { signal }).json('GET', '/api/v1/me')
    return true
  } catch (error) {
    if (error instanceof CliError && error.exitCode === EXIT.notAuthenticated) return false
    throw error
  }
}
