// The credentials of registries in the configuration of the docker command, which `docker login` writes.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The key of Docker Hub in the configuration. */
const DOCKER_HUB = 'https://index.docker.io/v1/'

/**
 * Returns the value of the header X-Registry-Auth. undefined: there are no credentials for the registry. Credential helpers are
 * not supported.
 * @param domain the registry, such as docker.io
 * @param env DOCKER_CONFIG is the directory of the configuration
 */
export async function readRegistryCredentials(
  domain: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const path = join(env.DOCKER_CONFIG ?? join(homedir(), '.docker'), 'config.json')
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'EACCES') return null
    throw error
  })
  if (text === null) return undefined
  let auths: Record<string, { auth?: unknown } | null> | undefined
  try {
    auths = (JSON.parse(text) as { auths?: typeof auths } | null)?.auths
  } catch (error) {
    throw new Error(`${path} is not JSON: ${(error as Error).message}`)
  }
  const keys =
    domain === 'docker.io' ? [DOCKER_HUB, domain] : [domain, `https://${domain}`, `http://${domain}`]
  const auth = keys
    .map((key) => auths?.[key]?.auth)
    .find((value) => typeof value === 'string' && value !== '')
  if (typeof auth !== 'string') return undefined
  const credentials = Buffer.from(auth, 'base64').toString('utf8')
  const colon = credentials.indexOf(':')
  if (colon === -1) return undefined
  const header = {
    username: credentials.slice(0, colon),
    password: credentials.slice(colon + 1),
    serveraddress: domain === 'docker.io' ? DOCKER_HUB : domain,
  }
  return Buffer.from(JSON.stringify(header)).toString('base64url')
}
