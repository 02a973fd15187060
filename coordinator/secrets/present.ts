// Converts rows of secrets to API objects (spec §2.8), none of which has a value.
import type { Secret, SecretGrant, SecretMount, SecretUse } from '../../shared/api/secrets.ts'
import { toTimestamp, toTimestampOrNull } from '../../shared/clock.ts'
import type { SecretGrantRow, SecretRow } from '../db/schema.ts'
import { parseLocations } from './locations.ts'
import type { MountWithSecret } from './mount-store.ts'
import type { ListedSecretRow } from './store.ts'
import type { ListedUseRow } from './use-store.ts'

/** Does not validate: the coordinator wrote the JSON from validated values. */
export const parseHosts = ({ hosts }: Pick<SecretRow, 'hosts'>): string[] => JSON.parse(hosts) as string[]

export const presentSecret = (row: ListedSecretRow, grants: readonly SecretGrantRow[]): Secret => ({
  id: row.id,
  name: row.name,
  description: row.description,
  hosts: parseHosts(row),
  in: parseLocations(row),
  placeholder: row.placeholder,
  mountCount: row.mount_count,
  scope: row.scope,
  grants: grants.map(presentGrant),
  createdAt: toTimestamp(row.created_at),
  updatedAt: toTimestamp(row.updated_at),
  lastRotatedAt: toTimestampOrNull(row.last_rotated_at),
})

export const presentGrant = (row: SecretGrantRow): SecretGrant => ({
  id: row.id,
  boxId: row.box_id,
  hostname: row.hostname,
  userId: row.user_id,
  email: row.email,
  createdAt: toTimestamp(row.created_at),
})

export const presentMount = (row: MountWithSecret): SecretMount => ({
  id: row.id,
  envName: row.env_name,
  secret: { id: row.secret_id, name: row.name, placeholder: row.placeholder, hosts: parseHosts(row) },
})

export const presentUse = (row: ListedUseRow): SecretUse => ({
  boxId: row.box_id,
  hostname: row.hostname,
  host: row.host,
  firstAt: toTimestamp(row.first_at),
  lastAt: toTimestamp(row.last_at),
  count: row.count,
})
