// Shares of ports on each database: concurrent requests, the counts of openings, expiry, and the plans of the queries.
import t, { type Test } from 'tap'
import { removeAllBoxes } from '../../../coordinator/boxes/remove-all.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { confirmActor } from '../../../coordinator/identity/confirm-actor.ts'
import { createOpenings } from '../../../coordinator/port-shares/openings.ts'
import { createServedShares } from '../../../coordinator/port-shares/served-shares.ts'
import { createPortShareService } from '../../../coordinator/port-shares/service.ts'
import { createShareBase } from '../../../coordinator/port-shares/share-base.ts'
import type { PortAudience, PortShare } from '../../../shared/api/port-shares.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { createTestAdmit } from '../../support/admit.ts'
import { onEachDatabase } from '../../support/db.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60_000
const switches = { shares: true, shareLinks: true }
const { signal } = new AbortController()

async function start(t: Test, db: Db) {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const log = { error: () => t.fail('an error was logged') }
  const served = createServedShares({ db, clock, log, switches })
  const boxes = createTestBoxService(db, { clock, beforeDelete: served.onBoxDelete })
  const shares = createPortShareService({
    ...{ db, clock, boxes, switches, confirmActor },
    base: createShareBase('http://localhost:7070', []),
    admit: createTestAdmit(),
  })
  const ended: string[] = []
  served.events.on('ended', (id) => ended.push(id))
  const create = async (boxId: string, port: number, access?: PortAudience): Promise<PortShare> =>
    (await shares.create(owner, boxId, { port, access })).response.share
  const listOfBox = async (boxId: string): Promise<PortShare[]> => {
    const listed: PortShare[] = []
    for await (const page of shares.listOfBox(boxId)) listed.push(...page)
    return listed
  }
  return { db, clock, owner, log, served, boxes, shares, ended, create, listOfBox }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('concurrent requests do not exceed the limit of links', async (t) => {
    const { boxes, owner, create, db, shares } = await start(t, await newDb(t))
    const ids = await Promise.all([1, 2, 3, 4].map(async () => (await boxes.create(owner, {})).id))
    const results = await Promise.allSettled(
      Array.from({ length: 24 }, (_, n) =>
        create(ids[n % 4] ?? '', 3000 + n, n % 3 === 0 ? 'public' : 'anyone'),
      ),
    )
    const created = results.filter(({ status }) => status === 'fulfilled')
    t.equal(created.length, LIMITS.shareLinks)
    for (const result of results)
      if (result.status === 'rejected') t.match(result.reason, { code: 'share_link_limit' })
    t.equal((await db.selectFrom('port_shares').select('id').execute()).length, LIMITS.shareLinks)
    t.match((await shares.describe(owner)).modes.public, { error: 'share_link_limit' })
  })

  t.test('concurrent requests for one port leave one link', async (t) => {
    const { boxes, owner, create, listOfBox, ended } = await start(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    const created = await Promise.all(
      Array.from({ length: 12 }, (_, n) => create(id, 80, (['members', 'public'] as const)[n % 2])),
    )
    const live = await listOfBox(id)
    t.equal(live.length, 1)
    const others = new Set(created.map((share) => share.id).filter((shareId) => shareId !== live[0]?.id))
    t.same(new Set(ended), others)
    t.equal(ended.length, others.size, 'each end is emitted once')
  })

  t.test('a share is found by its slug and by its id', async (t) => {
    const { db, boxes, owner, create, served, ended } = await start(t, await newDb(t))
    const { id: boxId } = await boxes.create(owner, { name: 'fig' })
    const { id, slug } = await create(boxId, 3000)
    const expected = {
      share: {
        ...{ id, workspaceId: owner.workspaceId, boxId, port: 3000, slug, access: 'members' },
        ...{ secretHash: null, expiresAt: null, rewritesHost: false },
      },
      box: await boxes.find(owner, boxId),
    }
    t.has(await served.find(slug), expected)
    t.has(await served.get(owner, id), expected)
    t.equal(await served.find(slug.toUpperCase()), undefined)
    t.equal(await served.find(''), undefined)
    const notFound = { code: 'not_found' }
    for (const unknown of ['shr_0', slug, '']) await t.rejects(served.get(owner, unknown), notFound)
    await t.rejects(served.get(await addUser(db, owner, { role: 'contractor' }), id), notFound)
    await t.rejects(served.get({ ...owner, workspaceId: 'ws_other' }, id), notFound)
    await boxes.remove(owner, boxId)
    t.equal(await served.find(slug), undefined)
    await t.rejects(served.get(owner, id), notFound)
    t.same(ended, [id])
  })

  t.test('the purge of a workspace ends its shares, and no share of a deleted box is found', async (t) => {
    const { db, clock, boxes, owner, create, served, ended } = await start(t, await newDb(t))
    const { id: boxId } = await boxes.create(owner, {})
    const { id, slug } = await create(boxId, 3000)
    const options = { db, clock, schedule: () => undefined, beforeDelete: served.onBoxDelete }
    await removeAllBoxes(options, owner.workspaceId, signal)
    t.equal(await served.find(slug), undefined)
    t.same(ended, [id])
    await db.updateTable('port_shares').set({ ended_at: null }).execute()
    t.equal(await served.find(slug), undefined)
    await t.rejects(served.get(owner, id), { code: 'not_found' })
  })

  t.test('the open links of a box end when it becomes restricted, and no new ones are created', async (t) => {
    const { db, boxes, owner, create, served, shares, ended, listOfBox } = await start(t, await newDb(t))
    const { id: boxId } = await boxes.create(owner, {})
    const members = await create(boxId, 1)
    const open = [await create(boxId, 2, 'anyone'), await create(boxId, 3, 'public')]
    await transaction(db, (trx) => served.restrictBox(trx, boxId))
    t.same(ended.toSorted(), open.map(({ id }) => id).toSorted())
    t.same(
      (await listOfBox(boxId)).map(({ id }) => id),
      [members.id],
    )
    // A link of a box that an earlier version has restricted.
    await db.updateTable('port_shares').set({ ended_at: null }).execute()
    await db.updateTable('boxes').set({ restricted: 1 }).execute()
    for (const { slug } of open) t.equal(await served.find(slug), undefined)
    t.not(await served.find(members.slug), undefined)
    for (const access of ['anyone', 'public'] as const)
      await t.rejects(create(boxId, 4, access), { code: 'box_restricted' })
    await t.rejects(create(boxId, 2), { code: 'box_restricted' })
    t.not(await create(boxId, 4), undefined)
    const box = await boxes.find(owner, boxId)
    t.match((await shares.describe(owner, box)).modes, {
      members: { allowed: true },
      anyone: { error: 'box_restricted' },
      public: { error: 'box_restricted' },
    })
    t.match((await shares.describe(owner)).modes, { anyone: { allowed: true } })
  })

  t.test('a change that is rolled back ends no link', async (t) => {
    const { boxes, owner, create, served, ended, db } = await start(t, await newDb(t))
    const { id: boxId } = await boxes.create(owner, {})
    const { slug } = await create(boxId, 3000)
    const failing = createTestBoxService(db, {
      async beforeDelete(...deletion) {
        await served.onBoxDelete(...deletion)
        throw new Error('failed')
      },
    })
    await t.rejects(failing.remove(owner, boxId), /failed/)
    t.not(await served.find(slug), undefined)
    t.same(ended, [])
  })

  t.test('openings are counted in memory and written together', async (t) => {
    const { db, clock, log, boxes, owner, create, listOfBox } = await start(t, await newDb(t))
    const { id: boxId } = await boxes.create(owner, {})
    const [first, second] = [await create(boxId, 1), await create(boxId, 2)]
    const openings = createOpenings({ db, clock, log, flushMs: 1e6 })
    const read = async () =>
      new Map(
        (await listOfBox(boxId)).map(({ id, openCount, lastOpenedAt }) => [id, { openCount, lastOpenedAt }]),
      )
    for (let n = 0; n < 3; n++) {
      clock.advance(1000)
      openings.record(first.id)
    }
    const last = new Date(clock.now()).toISOString()
    openings.record('shr_deleted')
    t.match((await read()).get(first.id), { openCount: 0, lastOpenedAt: null })
    const flushed = openings.flush()
    clock.advance(1000)
    openings.record(first.id)
    await flushed
    t.match((await read()).get(second.id), { openCount: 0, lastOpenedAt: null })
    const { openCount = 0 } = (await read()).get(first.id) ?? {}
    t.ok(openCount >= 3, `${openCount} while an opening was recorded`)
    openings.record(second.id)
    await openings.close()
    const now = new Date(clock.now()).toISOString()
    t.not(now, last)
    t.match((await read()).get(first.id), { openCount: 4, lastOpenedAt: now })
    t.match((await read()).get(second.id), { openCount: 1, lastOpenedAt: now })
  })

  t.test('shares are deleted 30 days after their end', async (t) => {
    const { db, clock, boxes, owner, shares, create, served } = await start(t, await newDb(t))
    const { id: boxId } = await boxes.create(owner, {})
    const revoked = await create(boxId, 1)
    await shares.revoke(owner, revoked.id)
    const expiring = (await shares.create(owner, boxId, { port: 2, access: 'public', expiresIn: 300 }))
      .response.share
    const kept = await create(boxId, 3)
    const listIds = async () =>
      new Set((await db.selectFrom('port_shares').select('id').execute()).map(({ id }) => id))
    const readEnd = async (id: string) =>
      (await db.selectFrom('port_shares').select('ended_at').where('id', '=', id).executeTakeFirst())
        ?.ended_at
    t.equal(await shares.prune(signal), 0)
    t.equal(await readEnd(expiring.id), null)
    clock.advance(300_000)
    const expiredAt = clock.now()
    clock.advance(1000)
    t.equal(await shares.prune(signal), 0)
    t.equal(await readEnd(expiring.id), expiredAt)
    t.equal(await readEnd(kept.id), null)
    clock.advance(30 * DAY_MS - 300_000)
    t.equal(await shares.prune(signal), 1)
    t.same(await listIds(), new Set([expiring.id, kept.id]))
    await shares.revoke(owner, expiring.id)
    clock.advance(300_000)
    t.equal(await shares.prune(signal), 1)
    t.same(await listIds(), new Set([kept.id]))
    await t.rejects(shares.revoke(owner, expiring.id), { code: 'not_found' })
    t.not(await served.find(kept.slug), undefined)
  })

  t.test('the queries use indexes', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const { boxes, owner, shares, create, listOfBox, served, clock } = await start(t, db)
    const { id: boxId } = await boxes.create(owner, {})
    const contractor = await addUser(db, owner, { role: 'contractor' })
    await readPlans()
    const link = await create(boxId, 1, 'public')
    await create(boxId, 2)
    await listOfBox(boxId)
    for (const actor of [owner, contractor, { ...owner, boxIds: [boxId] }])
      for await (const page of shares.listAll(actor)) t.ok(page.length <= 2)
    await served.get(owner, link.id)
    clock.advance(40 * DAY_MS)
    await shares.prune(signal)
    clock.advance(40 * DAY_MS)
    t.equal(await shares.prune(signal), 0)
    await shares.revoke(owner, link.id).catch(() => undefined)
    await boxes.remove(owner, boxId)
    const plans = (await readPlans()).filter((line) => /port_shares|policies/.test(line))
    t.ok(plans.length > 12, `${plans.length} lines`)
    for (const line of plans) {
      t.notMatch(line, /Seq Scan/)
      t.notMatch(line, /^SCAN/)
    }
  })
})
