// The directory of an installation, which contains everything apart from the unit of the service manager.
import { readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceSymlink } from '../replace-symlink.ts'

export type Layout = {
  prefix: string
  versions: string
  /** Symlinks to the version in use and to the version before it. */
  current: string
  previous: string
  /** Shell assignments of the agent's environment, mode 0600. */
  envFile: string
  /** The key of the coordinator whose bundles this machine installs, in the PEM format. */
  publicKeyFile: string
  /** The certificates of a private authority, if there is one. */
  caFile: string
  stateDir: string
  tokenFile: string
  /** What the installation has created outside of the prefix: an InstallRecord. */
  recordFile: string
  /** Exists when the installation has enabled the services of its user at the start of the machine. */
  lingerFile: string
  /** The log of an agent without a service manager. */
  logFile: string
}

export const getLayout = (prefix: string): Layout => ({
  prefix,
  versions: join(prefix, 'versions'),
  current: join(prefix, 'current'),
  previous: join(prefix, 'previous'),
  envFile: join(prefix, 'agent.env'),
  publicKeyFile: join(prefix, 'coordinator.pub'),
  caFile: join(prefix, 'ca.pem'),
  stateDir: join(prefix, 'state'),
  tokenFile: join(prefix, 'state/token'),
  recordFile: join(prefix, 'install.json'),
  lingerFile: join(prefix, 'linger'),
  logFile: join(prefix, 'agent.log'),
})

/** Makes the version the current one. Another current version becomes the previous one. */
export async function switchVersion({ current, previous }: Layout, buildId: string): Promise<void> {
  const target = `versions/${buildId}`
  const replaced = await readTarget(current)
  if (replaced === target) return
  if (replaced !== null) await replaceSymlink(previous, replaced)
  await replaceSymlink(current, target)
}

export const readTarget = (path: string): Promise<string | null> =>
  readlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })

export const readIfExists = (path: string): Promise<string | null> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
