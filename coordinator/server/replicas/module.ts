// The connections to the other coordinators of the database.
import { randomBytes } from 'node:crypto'
import type { Keyring } from '../../base/sealing/keyring.ts'
import { SecretValue } from '../../base/sealing/secret-value.ts'
import { ensureSealedValue } from '../../deployment/values.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { createPeers, type Peers } from '../../replicas/peers.ts'
import type { Replica } from '../../replicas/replica.ts'
import type { ReplicaSettings } from '../../replicas/settings.ts'

export type PeersModuleContext = ModuleBase & {
  config: ReplicaSettings
  replica: Replica
  keyring: Keyring
}

const KEY = 'key of the coordinators'
const KEY_BYTES = 32

const createKey = (): SecretValue => new SecretValue(randomBytes(KEY_BYTES).toString('hex'))

/** This module is after that of the master keys, which checks them before a value is encrypted. */
export function peersModule({ config, db, log, replica, keyring }: PeersModuleContext) {
  const peers: Peers | null =
    config.replicaUrl === null
      ? null
      : createPeers({ db, replica, log, openKey: () => ensureSealedValue({ db, keyring }, KEY, createKey) })
  return {
    services: { peers },
    prepare: async () => peers?.open(),
    close: { name: 'close the connections to other coordinators', run: () => peers?.close() },
  } satisfies Module
}
