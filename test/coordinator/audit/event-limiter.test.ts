// The limit of reports and downloads: a credential cannot add any number of events to the audit log.
import t from 'tap'
import { createAuditLog } from '../../../coordinator/audit/audit-log.ts'
import { createEventLimiter } from '../../../coordinator/audit/event-limiter.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { createOwner, createTestClock } from '../../support/workspace.ts'

t.test('a credential may send 20 reports and downloads per second', async (t) => {
  const db = await sqliteForTest(t)
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const lockLive = async () => {
    throw new ApiError('not_found')
  }
  const audit = createAuditLog({ db, clock, boxes: { lockLive } })
  const report = (actor = owner) => audit.report(actor, { kind: 'exec', boxId: crypto.randomUUID() })
  const results = await Promise.allSettled(
    Array.from({ length: LIMITS.auditEventsPerSecond.perCredential + 1 }, () => report()),
  )
  const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'accepted'))
  t.same(codes, [
    ...Array.from({ length: LIMITS.auditEventsPerSecond.perCredential }, () => 'not_found'),
    'rate_limited',
  ])
  t.match(results.at(-1), {
    reason: { headers: { 'retry-after': '1' }, message: /20 reports and downloads per second\. .* in 1 s/ },
  })
  const other = { ...owner, credential: { ...owner.credential, id: 'key_other' } }
  await t.rejects(report(other), { code: 'not_found' }, 'another credential has its own limit')
})

t.test('the keys of a user have a limit together', async (t) => {
  const limit = createEventLimiter({ perCredential: 1, perUser: 2 })
  const actor = await createOwner(await sqliteForTest(t), createTestClock())
  const count = (id: string, userId: string | null) =>
    limit({ ...actor, userId, credential: { ...actor.credential, id } })
  // At once: the limits are those of a second.
  const results = await Promise.allSettled([
    count('key_1', 'usr_1'),
    count('key_1', 'usr_1'),
    count('key_2', 'usr_1'),
    count('key_3', 'usr_1'),
    count('key_4', 'usr_2'),
    count('key_5', null),
  ])
  t.same(
    results.map((result) => (result.status === 'fulfilled' ? null : result.reason.message)),
    [
      null,
      'This API key or session has reached the limit of 1 reports and downloads per second. Try again in 1 s.',
      null,
      'Your user has reached the limit of 2 reports and downloads per second. Try again in 1 s.',
      null,
      null,
    ],
  )
})
