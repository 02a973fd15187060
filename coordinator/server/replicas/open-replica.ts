// Registers this coordinator: as the only one of its database, or as one of several, whose settings must agree.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { StartError } from '../../base/start-error.ts'
import { readPricesOf } from '../../billing/billing.ts'
import { adoptBoxes, hasRowsWithoutHost, listDownHosts } from '../../boxes/lookups.ts'
import type { Db } from '../../db/open.ts'
import {
  listOthers,
  type Replica,
  registerOnlyReplica,
  registerSharedReplica,
} from '../../replicas/replica.ts'
import type { Config } from '../config.ts'
import { describeSharedSettings, findDifferences, formatDifferences } from '../shared-settings/compare.ts'

export type OpenedReplica = {
  replica: Replica
  /** No other coordinator of the database was alive. */
  isFirst: boolean
}

export type ReplicaOptions = {
  config: Config
  db: Db
  /** See DataDirectory. */
  host: string
  log: Pick<Logger, 'warn' | 'error'>
  /** The origin at which this coordinator listens. */
  listenerUrl: string
}

/** Throws StartError when the settings differ from those of another coordinator that is alive. */
export async function openReplica(options: ReplicaOptions): Promise<OpenedReplica> {
  const { db, host, log } = options
  const opened = await register(options)
  for (const down of await listDownHosts(db, host))
    log.warn(
      down,
      'boxes or snapshots are in the data directory of another host, which has no coordinator; see `box docs data-directory`',
    )
  return opened
}

async function register({ config, db, host, log, listenerUrl }: ReplicaOptions): Promise<OpenedReplica> {
  if (config.replicaUrl === null) {
    const replica = await registerOnlyReplica(db, host)
    // The only coordinator has the files of all rows that versions without hosts have left.
    await adoptBoxes(db, host)
    return { replica, isFirst: true }
  }
  if (await hasRowsWithoutHost(db))
    throw new StartError(
      'The database has boxes of an earlier version, which did not store where their files are. Start the coordinator that has their data directory once without BOXWOOD_REPLICA_URL.',
    )
  const url = withPort(config.replicaUrl, listenerUrl)
  const settings = describeSharedSettings(config, readPricesOf(config))
  const others = await listOthers(db)
  for (const other of others) {
    const differences = findDifferences(settings, other.settings)
    if (differences.length > 0) throw new StartError(formatDifferences(differences, other.name))
  }
  const name = `${hostname()} (${url})`
  const replica = await registerSharedReplica({ db, host, log, url, name, settings })
  return { replica, isFirst: others.length === 0 }
}

/** Port 0, as in BOXWOOD_LISTEN, means the port that the listener has got. */
function withPort(replicaUrl: string, listenerUrl: string): string {
  const url = new URL(replicaUrl)
  if (url.port === '0') url.port = new URL(listenerUrl).port
  return url.origin
}
