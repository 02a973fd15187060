// A second run of the installer: updates the settings and the version of an installed agent, and starts it if needed.
import { copyFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { readAgentEnv, writeAgentEnv } from './agent-env.ts'
import { getRejection, readConnection } from './connection.ts'
import { createAgentEnv } from './create-agent-env.ts'
import type { InstallRecord } from './install-record.ts'
import { type Layout, readTarget, switchVersion } from './layout.ts'
import { createService } from './services/choose-service.ts'
import type { InstallDeps, Settings } from './settings.ts'
import { SetupError } from './setup-error.ts'
import { startAndWait } from './start-and-wait.ts'
import { findUser } from './user.ts'

/** @throws SetupError when the coordinator refuses the agent, or when the agent does not connect */
export async function updateInstalled(
  { url, bundle, staging, caFile, hasService }: Settings,
  layout: Layout,
  record: InstallRecord,
  { env, print, signal }: InstallDeps,
): Promise<void> {
  // Root does not write into the directory of this user, who cannot restart the service of root.
  if (record.user !== null)
    throw new SetupError(
      `The agent of the box ${record.name} was installed by root for ${record.user}. The coordinator upgrades it. To change its settings, remove it with --uninstall as root, and install it again with a new token.`,
    )
  const user = await findUser(null)
  const service = createService(record.service, layout, user)
  const rejection = getRejection(await readConnection(layout.stateDir))
  const before = await readAgentEnv(layout.envFile)
  if (caFile !== null) await copyFile(caFile, layout.caFile)
  const hasCa = caFile !== null || before?.NODE_EXTRA_CA_CERTS !== undefined
  const after = createAgentEnv({ url, boxId: record.boxId, layout, home: user.home, hasCa, env })
  const isChanged = !isDeepStrictEqual(before, after)
  if (rejection !== null && !isChanged) throw new SetupError(rejection)
  await writeAgentEnv(layout.envFile, after)
  // Root downloads the archive also when the version is current: see install.sh.
  const isNewBuild = staging !== null && (await readTarget(layout.current)) !== `versions/${bundle.buildId}`
  if (isNewBuild) {
    const versionDir = join(layout.versions, bundle.buildId)
    await rm(versionDir, { recursive: true, force: true })
    await rename(staging, versionDir)
    await switchVersion(layout, bundle.buildId)
  }
  if (!hasService) return print(`This machine is the box ${record.name} already.`)
  // Commands continue without the supervisor and the agent.
  if (isChanged || caFile !== null || isNewBuild) await service.stop()
  await startAndWait(service, layout, { url, signal })
  const change = isNewBuild ? ` Its agent now has the version ${bundle.version}+${bundle.buildId}.` : ''
  print(`This machine is the box ${record.name} already, and is connected.${change}`)
}
