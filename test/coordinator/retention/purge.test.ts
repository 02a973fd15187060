// The purge of a closed workspace deletes every row of it, and no other row, also when it is interrupted anywhere.
import { type KyselyPlugin, sql } from 'kysely'
import t from 'tap'
import { deleteAllBoxes, removeAllBoxes } from '../../../coordinator/boxes/remove-all.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { subscribeToAccessChanges } from '../../../coordinator/http/access-changes.ts'
import type { ModuleRegistry } from '../../../coordinator/http/module.ts'
import { createPurge } from '../../../coordinator/retention/purge.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { onEachDatabase } from '../../support/db.ts'
import { deleteOfBox } from '../../support/owners.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { createTestClock } from '../../support/workspace.ts'
import {
  createWorkspaceRows,
  GLOBAL_TABLES,
  insertWorkspaceRows,
  readAllRows,
} from '../../support/workspace-rows.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const SHARED = 'both@example.com'

/** @param purged whose queries the test observes or interrupts; `db` has none of that */
function start(db: Db, listWorkspaceTables: ModuleRegistry['listWorkspaceTables'], purged = db) {
  const clock = createTestClock()
  const calls: string[] = []
  subscribeToAccessChanges(db, ({ workspaceId }) => calls.push(`access of ${workspaceId}`), {
    onGap: () => undefined,
  })
  const purge = createPurge({
    db: purged,
    clock,
    log: { info: () => undefined },
    listWorkspaceTables,
    async removeBoxes(workspaceId, signal) {
      const options = {
        db: purged,
        clock,
        schedule: (id: string) => void calls.push(`box ${id}`),
        beforeDelete: async () => undefined,
      }
      return removeAllBoxes(options, workspaceId, signal)
    },
    async removeSnapshots(workspaceId) {
      const query = db.selectFrom('snapshots').select('id').where('workspace_id', '=', workspaceId)
      return (await query.where('deleted_at', 'is', null).execute()).length === 0
    },
    removeArchives: async (workspaceId) => void calls.push(`archives of ${workspaceId}`),
    deleteBoxRows: (...args) => deleteAllBoxes({ db: purged, deleteOfBox }, ...args),
  })
  const insert = (workspaceId: string, emails: readonly string[]) =>
    insertWorkspaceRows(db, createWorkspaceRows({ workspaceId, emails, now: clock.now() }))
  /** What the jobs of the boxes and snapshots do. */
  async function finishJobs(workspaceId: string): Promise<void> {
    const ids = db.selectFrom('boxes').select('id').where('workspace_id', '=', workspaceId)
    const snapshotIds = db.selectFrom('snapshots').select('id').where('workspace_id', '=', workspaceId)
    const now = clock.now()
    await db.deleteFrom('jobs').where('box_id', 'in', ids).execute()
    await db.updateTable('boxes').set({ terminated_at: now }).where('id', 'in', ids).execute()
    await db.deleteFrom('snapshot_jobs').where('snapshot_id', 'in', snapshotIds).execute()
    await db.updateTable('snapshots').set({ deleted_at: now }).where('id', 'in', snapshotIds).execute()
  }
  const close = (workspaceId: string) =>
    db
      .updateTable('workspaces')
      .set({ closing_at: clock.now(), purge_after: clock.now() + DAY_MS })
      .where('id', '=', workspaceId)
      .execute()
  const run = (signal = new AbortController().signal) => purge('ws_a', signal)
  return { clock, calls, insert, finishJobs, close, run }
}

/** Fails the transaction of the n-th query from now on, as a coordinator that is killed. */
function createInterruption() {
  let remaining = Number.POSITIVE_INFINITY
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      remaining -= 1
      if (remaining < 0) throw new Error('killed')
      return node
    },
    transformResult: async ({ result }) => result,
  }
  return {
    plugin,
    interruptAfter(queries: number) {
      remaining = queries
    },
  }
}

onEachDatabase(t, async (t, newDb) => {
  const { listWorkspaceTables } = (await startTestCoordinator(t)).instance.context.modules
  t.test('every table: the rows of the workspace are deleted, and no others', async (t) => {
    const db = await newDb(t)
    const { plugin, interruptAfter } = createInterruption()
    const { clock, calls, insert, finishJobs, close, run } = start(
      db,
      listWorkspaceTables,
      db.withPlugin(plugin),
    )
    await insert('ws_b', ['b@example.com', SHARED])
    const others = await readAllRows(db)
    await insert('ws_a', ['a@example.com', SHARED])
    const before = await readAllRows(db)
    for (const table of Object.keys(before))
      if (!(GLOBAL_TABLES as readonly string[]).includes(table))
        t.ok(
          (before[table] ?? []).length > (others[table] ?? []).length,
          `${table} has rows of the workspace`,
        )
    // The person is a member of another workspace.
    const kept = before.sign_in_codes?.filter((row) => row.includes('sic1_ws_a')) ?? []
    const expected = { ...others, sign_in_codes: [...(others.sign_in_codes ?? []), ...kept].sort() }
    t.equal(kept.length, 1)

    t.equal(await run(), undefined, 'an open workspace is not purged')
    await close('ws_a')
    t.equal(await run(), clock.now() + DAY_MS, 'the purge is not due')
    const closed = await readAllRows(db)
    t.same({ ...closed, workspaces: [], schedules: [] }, { ...before, workspaces: [], schedules: [] })

    clock.advance(DAY_MS)
    t.equal(await run(), clock.now() + 250, 'waits for the box')
    t.same(calls, ['access of ws_a', 'box box_ws_a'])
    const waiting = await readAllRows(db)
    for (const table of ['tickets', 'sessions', 'api_keys'])
      t.same(waiting[table], others[table], `${table} end at once`)
    t.same(
      await db
        .selectFrom('users')
        .select('removed_at')
        .distinct()
        .where('workspace_id', '=', 'ws_a')
        .execute(),
      [{ removed_at: clock.now() }],
    )
    t.equal(
      waiting.commands?.length,
      before.commands?.length,
      'the history stays until the box is terminated',
    )

    await finishJobs('ws_a')
    let runs = 0
    for (let isComplete = false; !isComplete; runs++) {
      interruptAfter(runs)
      isComplete = await run().then(
        () => true,
        (error: Error) => {
          if (error.message !== 'killed') throw error
          return false
        },
      )
    }
    interruptAfter(Number.POSITIVE_INFINITY)
    t.ok(runs > 20, `${runs} runs`)
    t.same(await readAllRows(db), expected)
    t.equal(await run(), undefined)
    t.same(await readAllRows(db), expected, 'repeating it has no effect')
  })

  t.test('an aborted purge stops between two transactions, and continues', async (t) => {
    const db = await newDb(t)
    const { clock, insert, finishJobs, close, run } = start(db, listWorkspaceTables)
    const before = await readAllRows(db)
    await insert('ws_a', ['a@example.com'])
    await close('ws_a')
    await finishJobs('ws_a')
    clock.advance(DAY_MS)
    t.equal(await run(AbortSignal.abort()), undefined)
    t.equal(
      (await db.selectFrom('schedules').where('kind', '=', 'purge_workspace').select('kind').execute())
        .length,
      1,
    )
    t.equal(await run(), undefined)
    t.same(await readAllRows(db), before)
  })

  t.test('its duration does not grow with other workspaces', async (t) => {
    const db = await newDb(t)
    const { db: observed, readPlans } = capturePlans(db)
    const { clock, insert, finishJobs, close, run } = start(db, listWorkspaceTables, observed)
    await insert('ws_b', ['b@example.com'])
    await insert('ws_a', ['a@example.com'])
    await close('ws_a')
    await finishJobs('ws_a')
    clock.advance(DAY_MS)
    await run()
    for (const plan of new Set(await readPlans())) t.notMatch(plan, /^SCAN (?!CONSTANT)|Seq Scan/)
  })
})

t.test('the database finds the rows that refer to a deleted row by an index', async (t) => {
  const db = await sqliteForTest(t)
  const read = async (pragma: string, argument: string) =>
    (await sql<Record<string, string | number>>`select * from ${sql.raw(pragma)}(${argument})`.execute(db))
      .rows
  for (const { name: table } of await db.introspection.getTables()) {
    const indexes = (await read('pragma_index_list', table)).filter(({ partial }) => partial === 0)
    const firstColumns = await Promise.all(
      indexes.map(async ({ name }) => (await read('pragma_index_info', String(name)))[0]?.name),
    )
    for (const { from } of await read('pragma_foreign_key_list', table))
      t.ok(firstColumns.includes(from), `${table}.${from}`)
  }
})
