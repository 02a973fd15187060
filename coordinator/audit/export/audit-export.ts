// Wires up the export of the audit log: owners configure an endpoint, events are delivered to it.

import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { VERSION } from '../../../shared/version.ts'
import { resolveWithDns, resolveWithSystem } from '../../base/resolve-name.ts'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { createDeliveries, type Deliveries, type DeliveriesOptions } from './deliveries.ts'
import { createPost, type PostOptions } from './post.ts'
import { type AuditSinkService, createAuditSinkService } from './service.ts'
import { setSystemTimer } from './timers.ts'

export type AuditExport = Pick<Deliveries, 'start' | 'close'> & { service: AuditSinkService }

/** Tests replace the trusted certificates, the name resolution and the timers. */
export type AuditExportOverrides = Partial<Pick<PostOptions, 'ca' | 'resolve' | 'setTimer'>>

export function createAuditExport(options: {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'error'>
  replica: DeliveriesOptions['replica']
  /** Whether endpoints may have addresses that are not public. */
  allowsPrivate: boolean
  overrides?: AuditExportOverrides | undefined
  /** Throws workspace_closing. */
  assertOpen(trx: Trx, workspaceId: string): Promise<void>
  /** See createAuditSinkService. */
  confirmActor(trx: Trx, actor: Actor, now: number): Promise<unknown>
}): AuditExport {
  const { db, clock, log, replica, allowsPrivate, overrides, assertOpen, confirmActor } = options
  const setTimer = overrides?.setTimer ?? setSystemTimer
  const resolve = allowsPrivate ? resolveWithSystem : resolveWithDns
  const post = createPost({ allowsPrivate, resolve, setTimer, ...overrides })
  const deliveries = createDeliveries({
    db,
    clock,
    log,
    replica,
    post,
    setTimer,
    userAgent: `Boxwood/${VERSION}`,
  })
  return {
    service: createAuditSinkService({
      db,
      clock,
      allowsPrivate,
      assertOpen,
      confirmActor,
    }),
    start: deliveries.start,
    close: deliveries.close,
  }
}
