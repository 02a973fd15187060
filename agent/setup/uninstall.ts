// Removes the agent: stops it and the commands of the box, and removes what the installation has created.
import { execFile } from 'node:child_process'
import { existsSync, type Stats } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type InstallRecord, readRecord, removeEmptyDirectories } from './install-record.ts'
import { getLayout, type Layout } from './layout.ts'
import { findBoxProcesses, findSupervisors, terminate } from './processes.ts'
import { createService } from './services/choose-service.ts'
import { SetupError } from './setup-error.ts'
import { findUser } from './user.ts'

const GRACE_MS = 15_000

/** @throws SetupError when there is no installation in the prefix */
export async function uninstall(prefix: string, print: (line: string) => void): Promise<void> {
  const layout = getLayout(prefix)
  const record = await readRecord(layout.recordFile)
  if (record === null)
    throw new SetupError(`There is no agent in ${prefix}. Pass its directory with --prefix.`)
  const isRoot = process.getuid?.() === 0
  if (record.user !== null && !isRoot) return await removeAsUser(layout, record)
  const owner = await stat(prefix)
  if (!isRoot && owner.uid !== process.getuid?.())
    throw new SetupError(`The agent in ${prefix} belongs to another user. Run the installer as that user.`)
  const service = createService(record.service, layout, await findUser(record.user))
  await service.stop()
  await service.remove()
  await terminateAll(layout, record)
  await removeTree(prefix, owner)
  await removeEmptyDirectories(record.createdDirectories)
  print(
    `The agent is removed from this machine. If the coordinator still lists the box, delete it with: box rm ${record.name}`,
  )
}

/**
 * Removes the content as the owner of the tree, who could replace a directory with a symlink while root removes it. The
 * owner cannot remove the directory itself, which is in one of root.
 */
async function removeTree(dir: string, { uid, gid }: Stats): Promise<void> {
  if (uid === process.getuid?.()) return await rm(dir, { recursive: true, force: true })
  // rm fails at the directory itself, after it has removed the content.
  await promisify(execFile)('rm', ['-rf', '--', dir], { uid, gid, cwd: '/' }).catch(() => undefined)
  await removeEmptyDirectories([dir])
  if (existsSync(dir)) throw new SetupError(`${dir} is not empty. Delete it.`)
}

/** Terminates the supervisors first, because they restart the agent. */
async function terminateAll({ prefix }: Layout, { boxId }: InstallRecord): Promise<void> {
  await terminate(() => findSupervisors(prefix), GRACE_MS)
  await terminate(() => findBoxProcesses(boxId), GRACE_MS)
}

/**
 * The agent of a service that root has installed for another user removes itself, when its box is deleted. The unit stays:
 * without the link `current` its condition is not met, so it does not start. Root removes it with the installer.
 */
async function removeAsUser(layout: Layout, record: InstallRecord): Promise<void> {
  const { current, previous, stateDir, envFile } = layout
  for (const path of [current, previous]) await rm(path, { force: true })
  await terminateAll(layout, record)
  for (const path of [stateDir, envFile]) await rm(path, { recursive: true, force: true })
}
