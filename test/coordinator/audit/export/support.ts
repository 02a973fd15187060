// Delivers the audit log of a test workspace to a collector. Time and timers are under the control of the test.
import type { Test } from 'tap'
import { createDeliveries, type DeliveriesOptions } from '../../../../coordinator/audit/export/deliveries.ts'
import { createPost, type Post, type PostOptions } from '../../../../coordinator/audit/export/post.ts'
import { createAuditSinkService } from '../../../../coordinator/audit/export/service.ts'
import { recordAuditEvent } from '../../../../coordinator/audit/service.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { assertOpen } from '../../../../coordinator/identity/workspaces/service.ts'
import { sealAuditEvent } from '../../../../shared/audit-chain.ts'
import type { Collector } from '../../../support/https-collector.ts'
import { createFakeReplica } from '../../../support/replica.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createOwner, createTestClock } from '../../../support/workspace.ts'

export const silent = {
  info: () => undefined,
  error: () => undefined,
} as unknown as DeliveriesOptions['log']

/** Timers that run when the test says so. */
export function createManualTimers() {
  const timers = new Set<{ fn: () => void; ms: number }>()
  return {
    setTimer(fn: () => void, ms: number) {
      const timer = { fn, ms }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    list: () => [...timers].map(({ ms }) => ms),
    fire() {
      for (const timer of timers) {
        timers.delete(timer)
        timer.fn()
      }
    },
  }
}

export async function setUp(t: Test, db: Db, collector: Collector, options: Partial<PostOptions> = {}) {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const { workspaceId } = owner
  const [timers, timeouts] = [createManualTimers(), createManualTimers()]
  const { ca, resolve } = collector
  const post = createPost({ allowsPrivate: true, resolve, setTimer: timeouts.setTimer, ca, ...options })
  const startDeliveries = async (send: Post = post) => {
    const created = createDeliveries({
      replica: createFakeReplica(),
      ...{ db, clock, post: send, setTimer: timers.setTimer, userAgent: 'Boxwood/test' },
      log: silent,
      random: () => 1,
    })
    await created.start()
    t.teardown(() => created.close())
    return created
  }
  let deliveries = await startDeliveries()
  const service = createAuditSinkService({
    ...{ db, clock, allowsPrivate: options.allowsPrivate ?? true },
    assertOpen,
    confirmActor: async () => undefined,
  })
  const readSink = async () => (await service.get(owner)) ?? t.fail('there is no endpoint')
  return {
    ...{ clock, owner, service, timers, timeouts, post },
    readSink,
    /** Closes the deliveries and starts them again. */
    async restart(send?: Post) {
      await deliveries.close()
      deliveries = await startDeliveries(send)
    },
    record: (...names: string[]) =>
      transaction(db, async (trx) => {
        for (const name of names)
          recordAuditEvent(trx, {
            ...{ kind: 'box.create', actor: owner, boxId: null, detail: { name }, at: clock.now() },
          })
      }),
    /** Faster than record(). */
    async insertEvents(count: number) {
      const fields = { kind: 'box.create', origin: 'server', actor_kind: 'user', detail: '{}' } as const
      const ids = { actor_user_id: owner.userId, actor_token_id: null, box_id: null }
      const rows = Array.from({ length: count }, (_, index) =>
        sealAuditEvent({ workspace_id: workspaceId, no: index + 1, at: 0, ...fields, ...ids }, ''),
      )
      await db.insertInto('audit_log').values(rows).execute()
      const head = { workspace_id: workspaceId, no: count, hash: '', at: 0, pruned_no: 0, pruned_hash: '' }
      await db.insertInto('audit_heads').values(head).execute()
    },
    deleteEventsThrough: (no: number) =>
      transaction(db, async (trx) => {
        await trx.deleteFrom('audit_log').where('no', '<=', no).execute()
        await trx.updateTable('audit_heads').set({ pruned_no: no }).execute()
      }),
    waitForSink: (description: string, isReached: (sink: Record<string, unknown>) => boolean) =>
      waitUntil(description, async () => isReached({ ...(await service.get(owner)) })),
    workspaceId,
  }
}
