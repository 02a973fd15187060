// Installs the agent: verifies the bundle, enrols the machine, and starts the agent. A failure removes everything.
import { chown, copyFile, lstat, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newBoxToken } from '../../shared/ids.ts'
import { formatAgentVersion } from '../../shared/protocol.ts'
import { lockDirectory } from '../lock.ts'
import { readProxyVariables, type SelectProxy } from '../tunnel/proxy.ts'
import { writeAgentEnv } from './agent-env.ts'
import { checkBundle, checkPinnedKey } from './check-bundle.ts'
import { enroll } from './enroll.ts'
import { type InstallRecord, readRecord, writeRecord } from './install-record.ts'
import { createDirectory, getLayout, type Layout, readIfExists, switchVersion } from './layout.ts'
import type { SetupOptions } from './options.ts'
import { chooseService } from './services/choose-service.ts'
import { SetupError } from './setup-error.ts'
import { createUndoStack, type UndoStack } from './undo.ts'
import { type AgentUser, findUser } from './user.ts'

export type InstallDeps = {
  selectProxy: SelectProxy
  env: Readonly<Record<string, string | undefined>>
  print(line: string): void
}

type Verified = Required<{
  url: string
  publicKey: string
  bundle: NonNullable<SetupOptions['bundle']>
}>

/** @throws SetupError */
export async function install(options: SetupOptions, deps: InstallDeps): Promise<void> {
  const { url, publicKey, bundle, staging, archive } = options
  if (url === null || publicKey === null || bundle === null)
    throw new SetupError('The settings of the coordinator are missing. Download install.sh again.')
  const layout = getLayout(options.prefix)
  checkPinnedKey(await readIfExists(layout.publicKeyFile), publicKey, layout.prefix)
  if (staging !== null && archive !== null) await checkBundle(bundle, archive, publicKey)
  const lock = await lockDirectory(layout.prefix).catch(() => {
    throw new SetupError(`Another installer runs in ${layout.prefix}. Wait until it has finished.`)
  })
  const undo = createUndoStack()
  try {
    const record = await readRecord(layout.recordFile)
    if (record === null) await installNew({ url, publicKey, bundle }, layout, options, deps, undo)
    else await updateInstalled(layout, record, deps)
  } catch (error) {
    const failures = await undo.run()
    for (const failure of failures) deps.print(failure)
    throw error
  } finally {
    await lock.release()
  }
}

async function installNew(
  { url, publicKey, bundle }: Verified,
  layout: Layout,
  { staging, user: userName, caFile, hasService, createdDirectories }: SetupOptions,
  { selectProxy, env, print }: InstallDeps,
  undo: UndoStack,
): Promise<void> {
  const token = env.BOXWOOD_TOKEN
  if (!token)
    throw new SetupError(
      'A token is required. Create one with `box machine add` on a computer with the box command, and run the line that it prints.',
    )
  if (staging === null) throw new SetupError('The agent bundle is missing. Download install.sh again.')
  const user = await findUser(userName)
  undo.add(`remove the files in ${layout.prefix}`, () => removeInstalledFiles(layout))
  // Of an installer that was killed.
  await removeInstalledFiles(layout)
  await createDirectory(layout.stateDir, 0o700)
  // Before the exchange: a repeated exchange with the same token has the same result.
  const agentToken = newBoxToken()
  await writeFile(layout.tokenFile, `${agentToken}\n`, { mode: 0o600, flush: true })
  const agentVersion = formatAgentVersion(bundle.buildId)
  const { platform } = bundle
  const { boxId, name } = await enroll({ url, token, agentToken, platform, agentVersion, selectProxy })
  undo.add('', async () =>
    print(`The coordinator still has the box ${name}. Delete it with \`box rm ${name}\`.`),
  )
  if (caFile !== null) await copyFile(caFile, layout.caFile)
  await writeFile(layout.publicKeyFile, publicKey, { mode: 0o644 })
  await createDirectory(layout.versions, 0o755)
  await rename(staging, join(layout.versions, bundle.buildId))
  await switchVersion(layout, bundle.buildId)
  await writeAgentEnv(layout.envFile, {
    BOXWOOD_URL: url,
    BOXWOOD_BOX: boxId,
    BOXWOOD_STATE: layout.stateDir,
    BOXWOOD_HOME: user.home,
    ...(caFile === null ? {} : { NODE_EXTRA_CA_CERTS: layout.caFile }),
    // Also the authorities that the administrator has added to the system.
    NODE_USE_SYSTEM_CA: '1',
    ...readProxyVariables(env),
  })
  // The agent sends its lineage only where this file exists: see lineage.json.
  await writeFile(join(layout.stateDir, 'enrolled'), `${boxId}\n`, { mode: 0o600 })
  const service = await chooseService(layout, { hasService, user })
  await writeRecord(layout.recordFile, { boxId, name, service: service.kind, createdDirectories })
  await changeOwner(layout.prefix, user)
  if (!hasService) {
    print(
      `${name} is installed. Start its agent with: /bin/sh ${layout.current}/supervise.sh ${layout.prefix}`,
    )
    return
  }
  undo.add('remove the service', async () => {
    await service.stop()
    await service.remove()
  })
  await service.install()
  await service.start()
  print(`This machine is the box ${name}. Try it:\n  box exec ${name} -- uname -a`)
  if (service.notice !== null) print(service.notice)
}

async function updateInstalled(
  _layout: Layout,
  record: InstallRecord,
  { print }: InstallDeps,
): Promise<void> {
  print(`This machine is the box ${record.name} already.`)
}

/** Everything but the staging directory and the prefix itself, which install.sh removes. */
export async function removeInstalledFiles(layout: Layout): Promise<void> {
  const { stateDir, versions, current, previous, envFile, publicKeyFile, caFile, recordFile, logFile } =
    layout
  const paths = [stateDir, versions, current, previous, envFile, publicKeyFile, caFile, recordFile, logFile]
  for (const path of [...paths, `${logFile}.1`]) await rm(path, { recursive: true, force: true })
}

/** The user of the agent changes the versions in an upgrade. */
async function changeOwner(dir: string, user: AgentUser): Promise<void> {
  if (user.uid === process.getuid?.()) return
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    if (!(await lstat(path)).isSymbolicLink()) await chown(path, user.uid, user.gid)
  }
  await chown(dir, user.uid, user.gid)
}
