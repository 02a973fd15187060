// Requests and jobs of snapshots read only the index entries of the rows that they need.
import t from 'tap'
import { createSnapshotService } from '../../../../coordinator/boxes/snapshots/service.ts'
import { isWaitingForSnapshot, releaseSource } from '../../../../coordinator/boxes/sources/sources.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { createLeases } from '../../../../coordinator/jobs/leases.ts'
import { systemClock as clock } from '../../../../shared/clock.ts'
import { createTestAdmit } from '../../../support/admit.ts'
import { NO_BOX_SECRETS } from '../../../support/box-hooks.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { createFakeReplica, TEST_HOST } from '../../../support/replica.ts'
import { createOwner, createTestBoxService } from '../../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('listing snapshots reads the snapshots of the workspace that are not deleted', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const options = {
      db,
      clock,
      host: TEST_HOST,
      boxes,
      admit: createTestAdmit(),
      schedule: () => undefined,
      loadPlanLimits: async () => ({ snapshots: 1 }),
    }
    const service = createSnapshotService({
      ...options,
      boxSecrets: NO_BOX_SECRETS,
      providers: { byRegion: new Map() },
    })
    await readPlans()
    await service.list(owner)
    const plans = await readPlans()
    t.ok(
      plans.some((plan) => /snapshots_by_age/.test(plan)),
      plans.join('\n'),
    )
    t.notOk(
      plans.some((plan) => /^SCAN|Seq Scan|TEMP B-TREE|Sort/.test(plan)),
      plans.join('\n'),
    )
  })

  t.test('finding what a box waits for reads no other snapshots', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    await readPlans()
    await transaction(db, (trx) => isWaitingForSnapshot(trx, 'b', 'destroy'))
    await transaction(db, (trx) => isWaitingForSnapshot(trx, 'b', 'discard'))
    const plans = await readPlans()
    t.ok(plans.filter((plan) => /snapshots_by_box/.test(plan)).length >= 2, plans.join('\n'))
    t.notOk(
      plans.some((plan) => /^SCAN|Seq Scan on snapshots/.test(plan)),
      plans.join('\n'),
    )
  })

  t.test('finding the boxes of a snapshot reads no other boxes', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const { id } = await boxes.create(owner, {})
    const { id: other } = await boxes.create(owner, {})
    await db
      .insertInto('snapshots')
      .values(newRow(owner.workspaceId, owner.userId ?? '', id))
      .execute()
    await db.updateTable('boxes').set({ source_snapshot_id: 'snp_1' }).execute()
    const box = await db.selectFrom('boxes').selectAll().where('id', '=', other).executeTakeFirstOrThrow()
    await readPlans()
    await transaction(db, (trx) => releaseSource(trx, box, 0))
    const plans = await readPlans()
    t.ok(
      plans.some((plan) => /boxes_by_source/.test(plan)),
      plans.join('\n'),
    )
    t.notOk(
      plans.some((plan) => /^SCAN|Seq Scan/.test(plan)),
      plans.join('\n'),
    )
  })

  t.test('listing due jobs reads only the snapshots of these jobs', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const leases = createLeases(db, 'snapshot_jobs', createFakeReplica())
    await readPlans()
    await leases.listDueIds(0)
    const plans = await readPlans()
    t.ok(plans.some((plan) => /INDEX sqlite_autoindex_snapshots_1 \(id=\?\)|snapshots_pkey/.test(plan)))
    t.notOk(plans.some((plan) => /scan (on )?snapshots\b/i.test(plan)))
  })
})

const newRow = (workspace_id: string, owner_user_id: string, box_id: string) => ({
  ...{ id: 'snp_1', workspace_id, owner_user_id, box_id, name: 'a', description: null },
  ...{ status: 'available' as const, kind: 'fork' as const, transient: 1 as const, template_name: null },
  ...{ expires_at: null, source_hostname: 'a', tier: 'nano' as const, region: 'us-west-2' as const },
  ...{
    restricted: 0 as const,
    provider: 'local',
    image: null,
    env_vars: '[]',
    labels: '{}',
    environment_id: null,
    environment_version_no: null,
    mounts: '[]',
    content_bytes: 1,
    stored_bytes: 1,
    paused_ms: null,
  },
  ...{ error: null, created_at: 0, updated_at: 0, deleted_at: null },
})
