// The parts of the agent that only enrolled machines have: the key of the coordinator, lineage, connection.json and
// uninstallation.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { BOX_DELETED } from '../../shared/protocol.ts'
import type { CloudCredentialFiles } from '../cloud/credentials.ts'
import type { DisconnectReason } from '../tunnel/disconnect-reason.ts'
import { createConnectionFile } from './connection-file.ts'
import { type Lineage, openLineage } from './lineage.ts'
import { createUninstall, type Uninstall } from './uninstall.ts'

export type EnrolledMachine = {
  lineage: Lineage
  uninstall: Uninstall
  /** The key that the installer has stored, in the PEM format. */
  readCoordinatorKey(): Promise<string>
  onConnected(): void
  onDisconnected(reason: DisconnectReason): void
  close(): Promise<void>
}

export type MachineOptions = {
  stateDir: string
  clock: Clock
  log: Logger
  cloud: Pick<CloudCredentialFiles, 'remove'>
}

/** @param prefix the directory of the installation */
export async function openMachine(
  prefix: string,
  { stateDir, clock, log, cloud }: MachineOptions,
): Promise<EnrolledMachine> {
  const lineage = await openLineage(stateDir, log)
  const connectionFile = createConnectionFile({ stateDir, clock, log })
  const uninstall = createUninstall(prefix, log, cloud.remove)
  let accepted = Promise.resolve()
  return {
    lineage,
    uninstall,
    readCoordinatorKey: () => readFile(join(prefix, 'coordinator.pub'), 'utf8'),
    onConnected() {
      connectionFile.recordConnected()
      accepted = accepted.then(lineage.recordAccepted)
    },
    onDisconnected(reason) {
      connectionFile.recordDisconnected(reason)
      // The code excludes the response of a proxy.
      if (reason.status === 410 && reason.code === BOX_DELETED) uninstall()
    },
    async close() {
      await accepted
      await connectionFile.close()
    },
  }
}
