// Counts the uses of secrets in memory, and writes the counts each second: a request of a box writes nothing.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createPeriodicWriter, type PeriodicWriter } from '../base/periodic-writer.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { SecretBroker } from './types.ts'
import { addUse, deleteOldUses, lockUsedSecret, type NewUse } from './use-store.ts'

export type SecretUses = PeriodicWriter & Pick<SecretBroker, 'recordUse'>

export type SecretUsesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error' | 'warn'>
  /** Interval between writes. Default: 1 s. */
  flushMs?: number
}

/** A wildcard lets a box use any number of hosts: the uses of further hosts are not counted until the next write. */
const MAX_UNWRITTEN = 10_000
const BATCH_SIZE = 100

export function createSecretUses({ db, clock, log, flushMs = 1000 }: SecretUsesOptions): SecretUses {
  /** The uses of each secret, by box and host. */
  let unwritten = new Map<string, Map<string, NewUse>>()
  let size = 0

  function record({ secretId, boxId, host }: { secretId: string; boxId: string; host: string }): void {
    add(secretId, { boxId, host, firstAt: clock.now(), lastAt: clock.now(), count: 1 })
  }

  function add(secretId: string, use: NewUse): void {
    const ofSecret = unwritten.get(secretId) ?? new Map<string, NewUse>()
    const key = `${use.boxId} ${use.host}`
    const earlier = ofSecret.get(key)
    if (earlier === undefined) {
      if (size >= MAX_UNWRITTEN) return
      size += 1
      ofSecret.set(key, use)
    } else {
      earlier.firstAt = Math.min(earlier.firstAt, use.firstAt)
      earlier.lastAt = Math.max(earlier.lastAt, use.lastAt)
      earlier.count += use.count
    }
    unwritten.set(secretId, ofSecret)
  }

  async function writeUnwritten(): Promise<void> {
    const uses = [...unwritten].flatMap(([secretId, ofSecret]) =>
      chunk([...ofSecret.values()]).map((batch) => ({ secretId, batch })),
    )
    unwritten = new Map()
    size = 0
    while (uses.length > 0) {
      const { secretId, batch } = uses[0] ?? { secretId: '', batch: [] }
      try {
        await writeBatch(secretId, batch)
      } catch (error) {
        for (const use of uses) for (const later of use.batch) add(use.secretId, later)
        throw error
      }
      uses.shift()
    }
  }

  const writeBatch = (secretId: string, batch: readonly NewUse[]): Promise<void> =>
    transaction(db, async (trx) => {
      const workspaceId = await lockUsedSecret(trx, secretId)
      if (workspaceId === undefined) return
      for (const use of batch) await addUse(trx, { secretId, workspaceId }, use)
      await deleteOldUses(trx, secretId, { kept: LIMITS.secretUsageRows, batch: 2 * BATCH_SIZE })
    })

  return {
    recordUse: record,
    ...createPeriodicWriter({
      intervalMs: flushMs,
      write: writeUnwritten,
      log,
      subject: 'the uses of secrets',
    }),
  }
}

function chunk<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / BATCH_SIZE)
  return Array.from({ length: count }, (_, n) => items.slice(n * BATCH_SIZE, (n + 1) * BATCH_SIZE))
}
