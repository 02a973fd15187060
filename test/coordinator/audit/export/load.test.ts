// Deliveries of many workspaces: slow endpoints do not delay the others, and the database is read by index.
import t from 'tap'
import { createDeliveries, getRetryDelay } from '../../../../coordinator/audit/export/deliveries.ts'
import type { Post } from '../../../../coordinator/audit/export/post.ts'
import { createAuditSinkService } from '../../../../coordinator/audit/export/service.ts'
import { assertOpen } from '../../../../coordinator/identity/workspaces/service.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { createFakeReplica } from '../../../support/replica.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createOwner, createTestClock } from '../../../support/workspace.ts'
import { createManualTimers, silent } from './support.ts'

t.test('a slow endpoint does not delay other workspaces', async (t) => {
  const db = await sqliteForTest(t)
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const others = Array.from({ length: 40 }, (_, i) => ({ ...owner, workspaceId: `ws_${i}` }))
  for (const { workspaceId: id } of others)
    await db
      .insertInto('workspaces')
      .values({ id, name: id, zero_data_retention: 0, created_at: 0 })
      .execute()
  const delivered: string[] = []
  let [current, most] = [0, 0]
  const post: Post = async ({ url }, signal) => {
    if (url.includes('fast')) {
      delivered.push(url)
      return { delivered: true }
    }
    current += 1
    most = Math.max(most, current)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return { delivered: false, error: 'timeout' }
  }
  const timers = createManualTimers()
  const deliveries = createDeliveries({
    replica: createFakeReplica(),
    ...{ db, clock, post, setTimer: timers.setTimer, userAgent: 'Boxwood/test' },
    log: silent,
  })
  await deliveries.start()
  const service = createAuditSinkService({
    db,
    clock,
    allowsPrivate: true,
    assertOpen,
    confirmActor: async () => undefined,
  })
  for (const other of others.slice(0, 10)) await service.put(other, { url: 'https://slow.test' })
  for (const other of others.slice(10)) await service.put(other, { url: 'https://fast.test' })
  await waitUntil('the fast endpoints have their events', () => delivered.length >= 30)
  t.equal(most, 10)
  await deliveries.close()
  t.same(timers.list(), [])
})

t.test('the delay of retries doubles up to an hour', async (t) => {
  const delays = [1, 2, 3, 10, 11, 10_000].map((failures) => getRetryDelay(failures, () => 1) / 1000)
  t.same(delays, [5, 10, 20, 2560, 3600, 3600])
  t.equal(
    getRetryDelay(1, () => 0),
    2_500,
  )
})

t.test(
  'a start reads no events of workspaces that are up to date, and a batch reads only its events',
  async (t) => {
    const { db, readPlans } = capturePlans(await sqliteForTest(t))
    const clock = createTestClock()
    const owner = await createOwner(db, clock)
    const service = createAuditSinkService({
      db,
      clock,
      allowsPrivate: true,
      assertOpen,
      confirmActor: async () => undefined,
    })
    await service.put(owner, { url: 'https://a.test' })
    const createWith = (post: Post) =>
      createDeliveries({
        replica: createFakeReplica(),
        ...{ db, clock, post, setTimer: createManualTimers().setTimer, userAgent: 'Boxwood/test' },
        log: silent,
      })
    await readPlans()
    const first = createWith(async () => ({ delivered: true }))
    await first.start()
    await waitUntil('the event is delivered', async () => (await service.get(owner))?.pending === 0)
    await first.close()
    const plans = (await readPlans()).filter((plan) => plan.includes('audit_log'))
    t.ok(plans.length > 0)
    for (const plan of plans) t.match(plan, /^SEARCH audit_log USING INDEX \S+ \(workspace_id=\? AND no>\?\)/)
    const second = createWith(async () => ({ delivered: true }))
    await second.start()
    await second.close()
    t.notOk((await readPlans()).some((plan) => plan.includes('audit_log')))
  },
)
