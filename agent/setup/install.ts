// Installs the agent: verifies the bundle, enrols the machine, and starts the agent. A failure removes everything.
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newBoxToken } from '../../shared/ids.ts'
import { formatAgentVersion } from '../../shared/protocol.ts'
import { lockDirectory } from '../lock.ts'
import { writeAgentEnv } from './agent-env.ts'
import { changeOwner } from './change-owner.ts'
import { checkBundle, checkPinnedKey } from './check-bundle.ts'
import { checkClock } from './check-clock.ts'
import { createAgentEnv } from './create-agent-env.ts'
import { enroll } from './enroll.ts'
import { createDirectories, readRecord, removeEmptyDirectories, writeRecord } from './install-record.ts'
import { getLayout, type Layout, readIfExists, switchVersion } from './layout.ts'
import type { SetupOptions } from './options.ts'
import { chooseServiceKind, createService } from './services/choose-service.ts'
import { type InstallDeps, readSettings, type Settings } from './settings.ts'
import { SetupError } from './setup-error.ts'
import { startAndWait } from './start-and-wait.ts'
import { createUndoStack, type UndoStack } from './undo.ts'
import { updateInstalled } from './update.ts'
import { findUser } from './user.ts'

/** @throws SetupError */
export async function install(options: SetupOptions, deps: InstallDeps): Promise<void> {
  const settings = readSettings(options)
  const { publicKey, bundle, staging, archive } = settings
  const layout = getLayout(options.prefix)
  checkPinnedKey(await readIfExists(layout.publicKeyFile), publicKey, layout.prefix)
  if (staging !== null && archive !== null) await checkBundle(bundle, archive, publicKey)
  const lock = await lockDirectory(layout.prefix).catch((cause: Error) => {
    throw new SetupError(
      `Another installer runs in ${layout.prefix}: ${cause.message}. Wait until it has finished.`,
    )
  })
  try {
    const record = await readRecord(layout.recordFile)
    if (record !== null) await updateInstalled(settings, layout, record, deps)
    else await withUndo(deps, (undo) => installNew(settings, layout, deps, undo))
  } finally {
    await lock.release()
  }
}

async function withUndo({ print }: InstallDeps, run: (undo: UndoStack) => Promise<void>): Promise<void> {
  const undo = createUndoStack()
  try {
    await run(undo)
  } catch (error) {
    for (const failure of await undo.run()) print(failure)
    throw error
  }
}

async function installNew(
  settings: Settings,
  layout: Layout,
  { selectProxy, env, print, signal }: InstallDeps,
  undo: UndoStack,
): Promise<void> {
  const { url, bundle, staging, caFile, hasService } = settings
  const token = env.BOXWOOD_TOKEN
  if (!token)
    throw new SetupError(
      'A token is required. Create one with `box machine add` on a computer with the box command, and run the line that it prints.',
    )
  if (staging === null) throw new SetupError('The agent bundle is missing. Download install.sh again.')
  const user = await findUser(settings.user)
  await checkClock(url, selectProxy)
  const createdDirectories = [...settings.createdDirectories]
  undo.add('remove the directories', () => removeEmptyDirectories(createdDirectories))
  undo.add(`remove the files in ${layout.prefix}`, () => removeInstalledFiles(layout))
  // An installer that was killed may have left files.
  await removeInstalledFiles(layout)

  await mkdir(layout.stateDir, { mode: 0o700 })
  // The token is stored before the exchange: a repeated exchange with the same token has the same result.
  const agentToken = newBoxToken()
  await writeFile(layout.tokenFile, `${agentToken}\n`, { mode: 0o600, flush: true })
  const agentVersion = formatAgentVersion(bundle.buildId)
  const { platform } = bundle
  const { boxId, name } = await enroll({
    url,
    token,
    agentToken,
    platform,
    agentVersion,
    selectProxy,
    signal,
  })
  undo.add('print a notice', async () =>
    print(`The coordinator still has the box ${name}. Delete it with: box rm ${name}`),
  )

  if (caFile !== null) await copyFile(caFile, layout.caFile)
  await writeFile(layout.publicKeyFile, settings.publicKey, { mode: 0o644 })
  await mkdir(layout.versions)
  await rename(staging, join(layout.versions, bundle.buildId))
  await switchVersion(layout, bundle.buildId)
  const { home } = user
  const agentEnv = createAgentEnv({ url, boxId, layout, home, hasCa: caFile !== null, env })
  await writeAgentEnv(layout.envFile, agentEnv)
  // Distinguishes this agent from those of the coordinator's own boxes.
  await writeFile(join(layout.stateDir, 'enrolled'), `${boxId}\n`, { mode: 0o600 })
  const serviceKind = hasService ? (settings.serviceKind ?? (await chooseServiceKind())) : 'none'
  const service = createService(serviceKind, layout, user)
  if (hasService) {
    undo.add('remove the service', () => service.remove())
    undo.add('stop the service', () => service.stop())
    await service.install((path) => createDirectories(path, createdDirectories))
  }
  const record = { boxId, name, service: service.kind, user: settings.user, createdDirectories }
  await writeRecord(layout.recordFile, record)
  await changeOwner(layout.prefix, user)
  if (!hasService) {
    print(
      `This machine is the box ${name}. Start its agent with: ${layout.current}/node ${layout.current}/setup.mjs start`,
    )
    return
  }
  await startAndWait(service, layout, { url, signal })
  print(`This machine is the box ${name}. Run a command on it from a computer with the box command:`)
  print(`  box exec ${name} -- uname -a`)
  const notice = service.getNotice()
  if (notice !== null) print(notice)
}

/** Everything but the staging directory and the prefix itself, which install.sh removes. */
async function removeInstalledFiles(layout: Layout): Promise<void> {
  const { stateDir, versions, current, previous, envFile, publicKeyFile, caFile, recordFile, logFile } =
    layout
  const paths = [stateDir, versions, current, previous, envFile, publicKeyFile, caFile, recordFile, logFile]
  for (const path of [...paths, `${logFile}.1`, layout.lingerFile])
    await rm(path, { recursive: true, force: true })
}
