// What the provider knows of the server or cluster: read once per connection.

import { EngineUnavailableError } from '../engine-http/errors.ts'
import { PermanentProviderError } from '../provider.ts'
import type { Pool, Profile, ServerInfo } from './api.ts'
import type { IncusClient } from './client.ts'
import { UNTRUSTED_CLIENT } from './connection-problem.ts'

export type Server = {
  /** The name of the member that answers; `none` without a cluster. */
  name: string
  isClustered: boolean
  pool: Pool
  /** Whether a copy of an instance takes no time and no space, and is consistent while the instance runs. */
  hasSnapshots: boolean
  /** Whether root file systems can have a limited size. */
  hasQuotas: boolean
}

/** Without them the provider cannot work: Incus has them since its first version, LXD since 5.0. */
const REQUIRED_EXTENSIONS = ['instances', 'custom_volume_backup', 'instance_nic_bridged_port_isolation']

const SNAPSHOT_DRIVERS = ['btrfs', 'zfs', 'ceph']
const QUOTA_DRIVERS = [...SNAPSHOT_DRIVERS, 'lvm', 'lvmcluster']

/** @param poolName null: the pool of the profile `default` */
export async function readServer(client: IncusClient, poolName: string | null): Promise<Server> {
  const { auth, environment, api_extensions: extensions } = await client.get<ServerInfo>('')
  if (auth === 'untrusted') throw new EngineUnavailableError(`Incus is not available: ${UNTRUSTED_CLIENT}.`)
  const missing = REQUIRED_EXTENSIONS.filter((name) => !extensions.includes(name))
  if (missing.length > 0)
    throw new PermanentProviderError(
      `Incus ${environment.server_version} does not support ${missing.join(', ')}. Install Incus 6.0 or later.`,
    )
  const pool = await readPool(client, poolName)
  return {
    name: environment.server_clustered ? environment.server_name : 'none',
    isClustered: environment.server_clustered,
    pool,
    hasSnapshots: SNAPSHOT_DRIVERS.includes(pool.driver),
    hasQuotas: QUOTA_DRIVERS.includes(pool.driver),
  }
}

async function readPool(client: IncusClient, poolName: string | null): Promise<Pool> {
  const name = poolName ?? (await findDefaultPool(client))
  const pool = await client.find<Pool>(`/storage-pools/${encodeURIComponent(name)}`)
  if (pool === null)
    throw new PermanentProviderError(
      `Incus has no storage pool ${name}. Set BOXWOOD_INCUS_POOL to one that exists.`,
    )
  return pool
}

async function findDefaultPool(client: IncusClient): Promise<string> {
  const { devices } = await client.get<Profile>('/profiles/default')
  const root = Object.values(devices).find(({ type, path }) => type === 'disk' && path === '/')
  if (root?.pool !== undefined) return root.pool
  throw new PermanentProviderError(
    'The profile `default` of Incus has no root disk. Run `incus admin init`, or set BOXWOOD_INCUS_POOL.',
  )
}
