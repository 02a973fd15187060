// Records that the running boxes of a host are degraded when the host has no coordinator any more.

import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import type { Replica } from '../../replicas/replica.ts'
import { hasBoxesElsewhere, listRunningBoxIdsElsewhere } from '../store/box-hosts.ts'
import { degradeIfUnavailable } from './unavailable-hosts.ts'

export type HostMonitorOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  replica: Pick<Replica, 'host' | 'events'>
  tunnels: Pick<Tunnels, 'current'>
  /** Triggers a reconciliation of the box: its host may have returned meanwhile. */
  schedule(boxId: string): void
  /** How long a host may have no coordinator, as during an upgrade, before its boxes are degraded. */
  graceMs: number
}

export type HostMonitor = {
  /** Hosts may have stopped before this coordinator started. */
  start(): Promise<void>
  close(): void
}

export function createHostMonitor(options: HostMonitorOptions): HostMonitor {
  const { db, clock, log, replica, tunnels, schedule, graceMs } = options
  const timers = new Set<NodeJS.Timeout>()
  let isClosed = false

  function checkLater(): void {
    if (isClosed) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      check().catch((err: unknown) => {
        log.error({ err }, 'failed to check the boxes of a host that has stopped; will retry')
        checkLater()
      })
    }, graceMs).unref()
    timers.add(timer)
  }

  async function check(): Promise<void> {
    for (const id of await listRunningBoxIdsElsewhere(db, replica.host)) {
      // Its agent has connected to this coordinator meanwhile.
      if (tunnels.current(id)) continue
      const isDegraded = await transaction(db, async (trx) => {
        const box = await lockBox(trx, id)
        return box !== undefined && (await degradeIfUnavailable(trx, box, replica.host, clock.now()))
      })
      if (!isDegraded) continue
      log.warn({ boxId: id }, 'the machine that runs a box is not available')
      schedule(id)
    }
  }

  replica.events.on('stopped', checkLater)

  return {
    async start() {
      if (await hasBoxesElsewhere(db, replica.host)) checkLater()
    },
    close() {
      isClosed = true
      replica.events.off('stopped', checkLater)
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
