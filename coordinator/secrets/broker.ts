// Finds the secrets that a box may use with a host, for each of its requests.
import { EventEmitter } from 'node:events'
import { BROKER_TEST_HOST, coversHost } from '../../shared/secret-hosts.ts'
import { type Keyring, SealedValueError } from '../base/sealing/keyring.ts'
import { getSealedVersion } from '../base/sealing/sealed-text.ts'
import type { SecretValue } from '../base/sealing/secret-value.ts'
import { subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import { parseLocations } from './locations.ts'
import { BROKER_CUTS } from './mount-changes.ts'
import { type BrokeredRow, prepareBrokeredQuery } from './mount-store.ts'
import { parseHosts } from './present.ts'
import type { BrokeredSecret, SecretBroker } from './types.ts'

export function createSecretBroker({
  db,
  keyring,
  recordUse,
}: {
  db: Db
  keyring: Pick<Keyring, 'open'>
  recordUse: SecretBroker['recordUse']
}): SecretBroker {
  const listBrokered = prepareBrokeredQuery(db)
  const events: SecretBroker['events'] = new EventEmitter()
  subscribe(db, BROKER_CUTS, (cut) => events.emit('cut', cut), { onGap: () => void events.emit('missed') })

  /** The other secrets of the host stay usable when one value is damaged. */
  function open({ id, value, workspace_id: workspaceId }: BrokeredRow): SecretValue | null {
    try {
      return keyring.open(value, { workspaceId, rowId: id })
    } catch (error) {
      if (error instanceof SealedValueError) return null
      throw error
    }
  }

  const toBrokered = (row: BrokeredRow): BrokeredSecret => ({
    secretId: row.id,
    name: row.name,
    placeholder: row.placeholder,
    in: parseLocations(row),
    version: getSealedVersion(row.value),
    open: () => open(row),
  })

  return {
    events,
    recordUse,
    async find(boxId, host) {
      const rows = await listBrokered(boxId)
      const [first] = rows
      if (!first) return null
      const { workspace_id: workspaceId, hostname } = first
      if (host === BROKER_TEST_HOST) return { workspaceId, hostname, secrets: [] }
      const covering = rows.filter((row) => parseHosts(row).some((pattern) => coversHost(pattern, host)))
      if (covering.length === 0) return null
      // A secret may be mounted under several variables.
      const byId = new Map(covering.map((row) => [row.id, row]))
      return { workspaceId, hostname, secrets: [...byId.values()].map(toBrokered) }
    },
  }
}
