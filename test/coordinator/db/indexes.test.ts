// Requests whose duration must not grow with old rows: their queries read only index entries of matching rows.
import t from 'tap'
import {
  countBoxesByObservedState,
  listBoxesByObservedState,
} from '../../../coordinator/boxes/store/box-lists.ts'
import { createCommandHistory } from '../../../coordinator/history/commands/service.ts'
import { systemClock } from '../../../shared/clock.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { createOwner, createTestBoxService } from '../../support/workspace.ts'

const LIVE = /^SEARCH boxes USING (COVERING )?INDEX boxes_live/

t.test('listing live boxes, and naming a new box, read no terminated boxes', async (t) => {
  const { db, readPlans } = capturePlans(await sqliteForTest(t))
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  await readPlans()
  await boxes.list(owner, { live: true })
  t.match(await readPlans(), [LIVE])
  await boxes.listPage(owner, { live: true, limit: 10 })
  t.match(await readPlans(), [LIVE])
  await boxes.create(owner, {})
  const plans = await readPlans()
  t.match(
    plans.find((plan) => plan.includes('boxes')),
    LIVE,
  )
  t.notOk(plans.some((plan) => plan.startsWith('SCAN boxes')))
  await listBoxesByObservedState(db, ['running'], TEST_HOST)
  t.match((await readPlans())[0], /^(SCAN|SEARCH) boxes USING INDEX boxes_live/)
})

t.test('listing all boxes by page reads only the boxes of the page', async (t) => {
  const { db, readPlans } = capturePlans(await sqliteForTest(t))
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const before = Buffer.from(`1000.${crypto.randomUUID()}`).toString('base64url')
  await readPlans()
  await boxes.listPage(owner, { limit: 10, before })
  t.match(await readPlans(), [/^SEARCH boxes USING INDEX boxes_by_age \(workspace_id=\? AND created_at<\?\)/])
})

t.test('listing the box with a name or an id reads only this box', async (t) => {
  const { db, readPlans } = capturePlans(await sqliteForTest(t))
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  await readPlans()
  await boxes.list(owner, { box: 'fig' })
  t.same(await readPlans(), ['SEARCH boxes USING INDEX boxes_live_hostname (workspace_id=? AND hostname=?)'])
  await boxes.list(owner, { box: crypto.randomUUID() })
  t.same(await readPlans(), ['SEARCH boxes USING INDEX sqlite_autoindex_boxes_1 (id=?)'])
})

t.test('listing the box with a name that was deleted last reads only this box', async (t) => {
  const { db, readPlans } = capturePlans(await sqliteForTest(t))
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  await readPlans()
  await boxes.list(owner, { box: 'fig', deleted: true })
  t.same(await readPlans(), [
    'SEARCH boxes USING INDEX sqlite_autoindex_boxes_1 (id=?)',
    'SCALAR SUBQUERY 1',
    'SEARCH boxes USING COVERING INDEX boxes_deleted_hostname (workspace_id=? AND hostname=? AND terminated_at>?)',
  ])
})

t.test('listing commands reads only commands that match the filter', async (t) => {
  const { db, readPlans } = capturePlans(await sqliteForTest(t))
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const { id } = await boxes.create(owner, {})
  const history = createCommandHistory({
    db,
    clock: systemClock,
    boxes,
    pending: { waitForCommit: async () => undefined } as unknown as Parameters<
      typeof createCommandHistory
    >[0]['pending'],
  })
  const before = Buffer.from('1000.p_000000000000000000000000').toString('base64url')
  for (const [filter, plan] of [
    [{}, 'commands_by_box (box_id=?'],
    [{ status: 'failed' }, 'commands_by_status (box_id=? AND status=?'],
    [{ mode: 'detached' }, 'commands_by_mode (box_id=? AND mode=?'],
    [{ mode: 'detached', status: 'exited' }, 'commands_by_mode_and_status (box_id=? AND mode=? AND status=?'],
  ] as const)
    for (const [page, position] of [
      [{}, ''],
      [{ before }, ' AND requested_at<?'],
    ] as const) {
      await readPlans()
      await history.list(owner, id, { ...filter, ...page })
      const plans = await readPlans()
      t.same(
        plans.filter((line) => line.includes('commands') || line.includes('TEMP B-TREE')),
        [`SEARCH commands USING INDEX ${plan}${position})`],
      )
    }
})

t.test('counting the boxes of each state reads no terminated boxes', async (t) => {
  const { db, readPlans } = capturePlans(await sqliteForTest(t))
  await readPlans()
  await countBoxesByObservedState(db)
  const [plan] = await readPlans()
  t.equal(plan, 'SCAN boxes USING INDEX boxes_live')
})
