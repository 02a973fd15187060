// Removes the agent: stops it and the commands of the box, and removes what the installation has created.
import { rm } from 'node:fs/promises'
import { readAgentEnv } from './agent-env.ts'
import { readRecord, removeEmptyDirectories } from './install-record.ts'
import { getLayout } from './layout.ts'
import { findBoxProcesses, findSupervisors, terminate } from './processes.ts'
import { createService } from './services/choose-service.ts'
import { SetupError } from './setup-error.ts'

const COMMAND_GRACE_MS = 5_000

/** @throws SetupError when there is no installation in the prefix */
export async function uninstall(prefix: string, print: (line: string) => void): Promise<void> {
  const layout = getLayout(prefix)
  const env = await readAgentEnv(layout.envFile)
  const record = await readRecord(layout.recordFile)
  if (env === null) throw new SetupError(`There is no agent in ${prefix}. Pass its directory with --prefix.`)
  const service = createService(record?.service ?? 'none', layout)
  await service.stop()
  await service.remove()
  const boxId = env.BOXWOOD_BOX
  await terminate(() => findSupervisors(prefix), COMMAND_GRACE_MS)
  if (boxId !== undefined) await terminate(() => findBoxProcesses(boxId), COMMAND_GRACE_MS)
  await rm(prefix, { recursive: true, force: true })
  await removeEmptyDirectories(record?.createdDirectories ?? [])
  print('The agent is removed from this machine.')
}
