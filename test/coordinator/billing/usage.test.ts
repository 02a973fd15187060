// The usage of a month by box, member and day: it agrees with the team status at the same moment, before and after a charge.

import t from 'tap'
import { chargeWorkspace } from '../../../coordinator/billing/charge.ts'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { createAccountReader } from '../../../coordinator/billing/read-account.ts'
import { createUsageReader } from '../../../coordinator/billing/read-usage.ts'
import { listEntries } from '../../../coordinator/billing/store/accounts.ts'
import { updateBox } from '../../../coordinator/boxes/store/boxes.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { createTeamService } from '../../../coordinator/team/service.ts'
import type { TeamStatus } from '../../../shared/api/team.ts'
import type { Usage, UsageQuery } from '../../../shared/api/usage.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances } from '../../support/finances.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const HOUR_MS = 3_600_000
const START = Date.UTC(2030, 0, 31, 22)

type Of<Group extends Usage['by']> = Extract<Usage, { by: Group }>

async function createUsage(db: Db) {
  const clock = createTestClock(START)
  observeRows(db, createMeterObserver(clock))
  const owner = await createOwner(db, clock)
  const contractor = await addUser(db, owner, { role: 'contractor' })
  const boxes = createTestBoxService(db, { clock })
  const finances = createTestFinances(db, clock)
  await transaction(db, (trx) => finances.load(trx, owner.workspaceId))
  const team = createTeamService({
    db,
    clock,
    log: { error: () => undefined },
    members: { list: async () => [] },
    latestHeartbeat: () => undefined,
    countSessions: async () => new Map(),
    billing: { finances },
  })
  const readUsage = createUsageReader({ db, clock, billing: { finances } })
  const read = async <Group extends Usage['by']>(
    actor: Actor,
    by: Group,
    month?: string,
    split?: UsageQuery['split'],
  ) => {
    const query: UsageQuery = { by, ...(month && { month }), ...(split && { split }) }
    return (await readUsage(actor, query)) as Of<Group>
  }
  const create = async (actor: Actor, tier: 'lite' | 'nano', name: string): Promise<string> => {
    const { id } = await boxes.create(actor, { tier, name })
    await transaction(db, (trx) => updateBox(trx, id, { observed_state: 'running', updated_at: clock.now() }))
    return id
  }
  return {
    clock,
    owner,
    contractor,
    read,
    create,
    loadTeam: async (actor: Actor): Promise<TeamStatus> => JSON.parse(await team.load(actor)),
    charge: (until: number) =>
      chargeWorkspace({ db, prices: DEFAULT_PRICES }, owner.workspaceId, until / 1000),
  }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('the usage agrees with the team status', async (t) => {
    const db = await newDb(t)
    const { clock, owner, contractor, read, create, loadTeam, charge } = await createUsage(db)
    const lite = await create(owner, 'lite', 'lime')
    const nano = await create(contractor, 'nano', 'nut')
    clock.advance(3.5 * HOUR_MS)

    for (const isCharged of [false, true]) {
      if (isCharged) await charge(START + 3 * HOUR_MS)
      const team = await loadTeam(owner)
      t.equal(team.totals.spendCycleMicros, 75_000, 'an hour and a half of the new month')
      const byBox = await read(owner, 'box')
      t.same(byBox, {
        by: 'box',
        month: '2030-02',
        totalMicros: team.totals.spendCycleMicros,
        rows: [
          { boxId: lite, hostname: 'lime', micros: 60_000, computeSeconds: 5400 },
          { boxId: nano, hostname: 'nut', micros: 15_000, computeSeconds: 5400 },
        ],
      })
      for (const { boxId, micros } of byBox.rows)
        t.equal(micros, team.boxes.find(({ id }) => id === boxId)?.spendCycleMicros)
      const byMember = await read(owner, 'member')
      t.match(byMember.rows, [
        { userId: owner.userId, micros: 60_000 },
        { userId: contractor.userId, name: 'contractor', email: /^contractor-/, micros: 15_000 },
      ])
      t.same((await read(owner, 'day')).rows, [{ day: '2030-02-01', micros: 75_000, computeSeconds: 10_800 }])
      t.same(
        (await read(owner, 'day', '2030-01')).rows,
        [{ day: '2030-01-31', micros: 100_000, computeSeconds: 14_400 }],
        'the hours before midnight belong to the month before, also while they are not charged',
      )
      const readParts = async (actor: Actor, split: UsageQuery['split']) =>
        (await read(actor, 'day', '2030-02', split)).rows.map(({ parts }) => parts)
      t.same(await readParts(owner, 'box'), [
        [
          { id: lite, micros: 60_000 },
          { id: nano, micros: 15_000 },
        ],
      ])
      t.same(await readParts(owner, 'member'), [
        [
          { id: owner.userId, micros: 60_000 },
          { id: contractor.userId, micros: 15_000 },
        ],
      ])
      t.same(await readParts(contractor, 'box'), [[{ id: nano, micros: 15_000 }]])
      t.match(await read(owner, 'box', '2030-01'), { totalMicros: 100_000 })
      t.match(await read(owner, 'box', '2030-03'), { totalMicros: 0, rows: [] })

      const own = await read(contractor, 'box')
      t.same(own.rows, byBox.rows.slice(1), 'a contractor reads the usage of their boxes')
      t.equal(own.totalMicros, (await loadTeam(contractor)).totals.spendCycleMicros)
      t.match(await read(contractor, 'day'), { totalMicros: 15_000 })
      t.match(await read(contractor, 'member'), { rows: [{ userId: contractor.userId }] })
      t.equal((await read(contractor, 'member')).rows.length, 1)
    }

    await transaction(db, (trx) =>
      updateBox(trx, nano, { observed_state: 'terminated', terminated_at: clock.now() }),
    )
    t.match((await read(owner, 'box')).rows[1], { hostname: 'nut' }, 'a deleted box has its name')
    for (const table of ['box_events', 'jobs'] as const)
      await db.deleteFrom(table).where('box_id', '=', nano).execute()
    await db.deleteFrom('boxes').where('id', '=', nano).execute()
    t.match((await read(owner, 'box')).rows[1], { boxId: nano, hostname: null }, 'until it is pruned')
  })

  t.test('the usage and the entries are read from indexes', async (t) => {
    const captured = capturePlans(await newDb(t))
    const { owner, contractor, create, read, clock, charge } = await createUsage(captured.db)
    await create(owner, 'lite', 'lime')
    clock.advance(3 * HOUR_MS)
    await charge(START + 2 * HOUR_MS)
    await captured.readPlans()
    for (const actor of [owner, contractor])
      for (const by of ['box', 'member', 'day'] as const)
        for (const month of ['2030-01', '2030-02']) await read(actor, by, month)
    for (const before of [undefined, { at: START, cause: 'usage:a:0' }])
      await listEntries(captured.db, owner.workspaceId, { before, limit: 50 })
    const plans = (await captured.readPlans()).join('\n')
    t.match(plans, /billing_entries_by_time/)
    t.notMatch(plans, /TEMP B-TREE FOR ORDER BY|Sort .*billing_entries/)
    t.match(plans, /SEARCH billing_totals USING|billing_totals_pk/)
    t.notMatch(plans, /Seq Scan/)
    t.notMatch(plans, /^SCAN /m)
  })

  t.test('with billing off, nothing is read', async (t) => {
    const plain = await newDb(t)
    const owner = await createOwner(plain)
    const { db, readPlans } = capturePlans(plain)
    const clock = createTestClock(START)
    const readUsage = createUsageReader({ db, clock, billing: null })
    for (const by of ['box', 'member', 'day'] as const)
      t.same(await readUsage(owner, { by }), { by, month: '2030-01', totalMicros: 0, rows: [] })
    const config = { billing: 'off', freeCreditMicros: 5_000_000 } as const
    const account = createAccountReader({ config, db, clock, billing: null })
    t.match(await account.get(owner), { provider: 'off', freeCreditMicros: 0 })
    t.same(await account.list(owner, {}), { entries: [], nextBefore: null })
    t.same(await readPlans(), [], 'no query')
  })
})
