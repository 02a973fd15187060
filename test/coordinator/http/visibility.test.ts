// One rule decides which boxes and snapshots an actor sees: a list has exactly what a single read finds.
import fc from 'fast-check'
import t from 'tap'
import { createBoxFinder } from '../../../coordinator/boxes/find-box.ts'
import { requireSnapshot } from '../../../coordinator/boxes/sources/sources.ts'
import { listBoxes } from '../../../coordinator/boxes/store/box-lists.ts'
import { listSnapshots } from '../../../coordinator/boxes/store/snapshots.ts'
import type { BoxRow, SnapshotRow } from '../../../coordinator/db/schema.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { canSee, getVisibility } from '../../../coordinator/http/visibility.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createWorkspaceRows, insertWorkspaceRows } from '../../support/workspace-rows.ts'

const RUNS = 200

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  for (const workspaceId of ['ws_a', 'ws_b'])
    await insertWorkspaceRows(
      db,
      createWorkspaceRows({ workspaceId, emails: ['a@example.com', 'b@example.com'], now: 1 }),
    )
  const template = {
    box: await db.selectFrom('boxes').selectAll().limit(1).executeTakeFirstOrThrow(),
    snapshot: await db.selectFrom('snapshots').selectAll().limit(1).executeTakeFirstOrThrow(),
  }
  const users = await db.selectFrom('users').select(['id', 'workspace_id']).execute()
  const boxes: BoxRow[] = []
  const snapshots: SnapshotRow[] = []
  for (const [index, { id: owner_user_id, workspace_id }] of users.entries()) {
    const owner = { workspace_id, owner_user_id }
    const box: BoxRow = { ...template.box, ...owner, id: crypto.randomUUID(), hostname: `box-${index}` }
    await db.insertInto('boxes').values(box).execute()
    boxes.push(box)
    const id = `snp_${index.toString().padStart(16, '0')}`
    const snapshot: SnapshotRow = { ...template.snapshot, ...owner, id, box_id: box.id }
    await db.insertInto('snapshots').values(snapshot).execute()
    snapshots.push(snapshot)
  }
  const finder = createBoxFinder(db)
  const boxId = fc.constantFrom(...boxes.map(({ id }) => id), crypto.randomUUID())
  const actors: fc.Arbitrary<Actor> = fc.record({
    credential: fc.constant({ type: 'session', id: 'ses_a', expiresAt: 2 } as const),
    workspaceId: fc.constantFrom('ws_a', 'ws_b', 'ws_c'),
    role: fc.constantFrom('owner', 'member', 'contractor'),
    userId: fc.constantFrom(null, ...users.map(({ id }) => id)),
    boxIds: fc.option(fc.array(boxId, { maxLength: 3 })),
    access: fc.constant(null),
  })
  const isFound = (read: Promise<unknown>): Promise<boolean> =>
    read.then(
      () => true,
      (error: { code?: string }) => {
        if (error.code !== 'not_found') throw error
        return false
      },
    )

  await t.test('lists and single reads agree', async (t) => {
    let seen = 0
    await fc.assert(
      fc.asyncProperty(actors, async (actor) => {
        const visibility = getVisibility(actor)
        const listed = await listBoxes(db, { visibility, live: false, limit: 1000 })
        const listedBoxes = new Set(listed.map(({ id }) => id))
        for (const { id } of boxes)
          if ((await isFound(finder.find(actor, id))) !== listedBoxes.has(id)) throw new Error(`box ${id}`)
        const listedSnapshots = await listSnapshots(db, { visibility, includeTransient: true })
        const snapshotIds = new Set(listedSnapshots.map(({ id }) => id))
        for (const { id } of snapshots) {
          const found = isFound(transaction(db, (trx) => requireSnapshot(trx, actor, id)))
          if ((await found) !== snapshotIds.has(id)) throw new Error(`snapshot ${id}`)
        }
        seen += listedBoxes.size + snapshotIds.size
      }),
      { numRuns: RUNS, seed: 1 },
    )
    t.ok(seen > RUNS / 4, `${seen} visible rows in ${RUNS} runs`)
  })
})

t.test('a resource without a box is visible to actors without limits only', async (t) => {
  const owner: Actor = {
    credential: { type: 'session', id: 'ses_a', expiresAt: 2 },
    workspaceId: 'ws_a',
    role: 'owner',
    userId: 'usr_a',
    boxIds: null,
    access: null,
  }
  const resource = { workspaceId: 'ws_a', boxId: null, ownerUserId: null }
  t.equal(canSee(owner, resource), true)
  t.equal(canSee({ ...owner, workspaceId: 'ws_b' }, resource), false)
  t.equal(canSee({ ...owner, boxIds: ['box'] }, resource), false)
  t.equal(canSee({ ...owner, role: 'contractor' }, resource), false)
  t.equal(canSee({ ...owner, role: 'contractor', userId: null }, resource), false)
})
