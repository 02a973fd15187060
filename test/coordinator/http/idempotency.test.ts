// Idempotency-Key: every row of the spec's table (§4.1.6), and keys left by a crash.
import { sql } from 'kysely'
import t from 'tap'
import { z } from 'zod'
import { dialectTraits } from '../../../coordinator/db/dialects.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { byKey } from '../../../coordinator/http/access.ts'
import { createIdempotentRunner } from '../../../coordinator/http/idempotency.ts'
import { claimKey, saveResponse } from '../../../coordinator/http/idempotency-store.ts'
import { route } from '../../../coordinator/http/route.ts'
import { systemClock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addReplica, createFakeReplica } from '../../support/replica.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createOwner } from '../../support/workspace.ts'
import { actor, startTestServer } from './test-server.ts'

/** Routes that insert a row each time they run. The row only exists when the transaction committed. */
function createInsertRoutes() {
  const insertHandler = {
    runs: 0,
    /** Awaited by each run before it responds. */
    beforeResponse: async () => {},
  }
  const createInsertRoute = (path: string, params?: z.ZodType) =>
    route({
      access: byKey('boxes', 'write'),
      method: 'POST',
      path,
      summary: 'Insert a row',
      request: {
        body: z.object({ name: z.string().optional(), size: z.number().optional() }),
        ...(params && { params }),
      },
      idempotent: true,
      responses: { 202: z.object({}) },
      async handler({ trx, body }) {
        insertHandler.runs += 1
        const id = `ws_inserted_${insertHandler.runs}`
        await trx
          ?.insertInto('workspaces')
          .values({ id, name: String(body.name), zero_data_retention: 0, created_at: 1 })
          .execute()
        await insertHandler.beforeResponse()
        return { id, body }
      },
    })
  return {
    insertHandler,
    routes: [
      createInsertRoute('/things'),
      createInsertRoute('/things/:id/copy', z.object({ id: z.string() })),
    ],
  }
}

async function setUp(t: Parameters<typeof startTestServer>[0]) {
  const { insertHandler, routes } = createInsertRoutes()
  let now = Date.UTC(2030, 0, 1)
  const server = await startTestServer(t, {
    control: routes,
    clock: { now: () => now },
    keys: {
      dcp_second_key: { actor: { ...actor, credential: { ...actor.credential, id: 'key_2' } } },
      dcp_other_member: { actor: { ...actor, userId: 'usr_2' } },
      dcp_demoted: { actor: { ...actor, role: 'member' } },
      dcp_scope_ab: { actor: { ...actor, boxIds: ['a', 'b'] } },
      dcp_scope_ba: { actor: { ...actor, boxIds: ['b', 'a'] } },
      dcp_other_workspace: { actor: { ...actor, workspaceId: 'ws_2' } },
    },
  })
  const post = (
    body: unknown,
    idempotencyKey: string,
    { key = 'dcp_owner', path = '/things' }: { key?: string; path?: string } = {},
  ) => server.send('POST', `/api/v1${path}`, { body, key, headers: { 'idempotency-key': idempotencyKey } })
  const advance = (ms: number) => {
    now += ms
  }
  const countRows = async () =>
    (await server.db.selectFrom('workspaces').where('id', 'like', 'ws_inserted_%').select('id').execute())
      .length
  return { ...server, insertHandler, post, countRows, advance }
}

t.test('replays the response of the same request without running it again', async (t) => {
  const { post, countRows, insertHandler } = await setUp(t)
  const first = await post({ name: 'a', size: 1 }, 'k')
  t.equal(first.status, 202)
  t.equal(first.headers.get('idempotent-replayed'), null)
  const untyped = await post('{ "size": 1, "name": "a" }', 'k')
  t.equal(untyped.status, 400, 'a body without the JSON content type is rejected')
  const replay = await post({ size: 1, name: 'a' }, 'k')
  t.equal(replay.status, 202)
  t.equal(replay.text, first.text)
  t.equal(replay.headers.get('idempotent-replayed'), 'true')
  t.equal((await post({ name: 'a', size: 1 }, 'k', { key: 'dcp_second_key' })).text, first.text)
  t.equal(insertHandler.runs, 1)
  t.equal(await countRows(), 1)
})

t.test('rejects a key that was used for a different request', async (t) => {
  const { post, countRows } = await setUp(t)
  await post({ name: 'a' }, 'k')
  for (const [description, body, options] of [
    ['another body', { name: 'b' }, {}],
    ['another, invalid body', { name: 1 }, {}],
    ['another member', { name: 'a' }, { key: 'dcp_other_member' }],
    ['another role', { name: 'a' }, { key: 'dcp_demoted' }],
    ['another scope', { name: 'a' }, { key: 'dcp_scope_ab' }],
  ] as const) {
    const response = await post(body, 'k', options)
    t.equal(response.status, 422, description)
    t.equal(response.json.error, 'idempotency_key_reused')
  }
  await post({ name: 'a' }, 'path', { path: '/things/1/copy' })
  t.equal((await post({ name: 'a' }, 'path', { path: '/things/2/copy' })).status, 422, 'another path id')
  t.equal(await countRows(), 2)
})

t.test('scopes a key to its route and workspace, and ignores the order of box ids', async (t) => {
  const { post, countRows } = await setUp(t)
  await post({}, 'k')
  t.equal((await post({}, 'k', { path: '/things/1/copy' })).headers.get('idempotent-replayed'), null)
  t.equal((await post({}, 'k', { key: 'dcp_other_workspace' })).headers.get('idempotent-replayed'), null)
  await post({}, 'scoped', { key: 'dcp_scope_ab' })
  t.equal((await post({}, 'scoped', { key: 'dcp_scope_ba' })).headers.get('idempotent-replayed'), 'true')
  t.equal(await countRows(), 4)
})

t.test('rejects a repeated request with Retry-After while the first one is running', async (t) => {
  const { post, insertHandler } = await setUp(t)
  const started = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  insertHandler.beforeResponse = () => {
    started.resolve()
    return finish.promise
  }
  const first = post({ name: 'a' }, 'k')
  await started.promise
  const second = await post({ name: 'a' }, 'k')
  t.equal(second.status, 409)
  t.equal(second.json.error, 'idempotency_in_progress')
  t.match(second.headers.get('retry-after'), /^\d+$/)
  t.equal((await post({ name: 'b' }, 'k')).status, 422)
  finish.resolve()
  const response = await first
  t.equal(response.status, 202)
  t.equal((await post({ name: 'a' }, 'k')).text, response.text)
  t.equal(insertHandler.runs, 1)
})

t.test('runs again when the request that had the key has ended without a response', async (t) => {
  const { post, db, insertHandler } = await setUp(t)
  await post({ name: 'a' }, 'k')
  await db.updateTable('idempotency_keys').set({ status: null, body: null }).execute()
  t.equal((await post({ name: 'b' }, 'k')).status, 422)
  const response = await post({ name: 'a' }, 'k')
  t.equal(response.status, 202)
  t.equal(insertHandler.runs, 2)
  t.equal((await post({ name: 'a' }, 'k')).text, response.text)
  t.equal(insertHandler.runs, 2)
})

const countWaiting = async (db: Db): Promise<boolean> => {
  const { rows } = await sql`select 1 from pg_stat_activity where wait_event_type = 'Lock'`.execute(db)
  return rows.length > 0
}

await onEachDatabase(t, async (t, newDb) => {
  await t.test('a key whose response is being stored is read after the commit', async (t) => {
    const db = await newDb(t)
    const { workspaceId } = await createOwner(db)
    const id = { workspace_id: workspaceId, route: 'POST /things', key: 'k' }
    const row = { ...id, fingerprint: 'f', created_at: 1, lease_owner: 'rep_test' }
    t.equal(await claimKey(db, row, 0), undefined)
    const [begun, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const stored = transaction(db, async (trx) => {
      await saveResponse(trx, id, { status: 202, body: '{}' }, 'rep_test')
      begun.resolve()
      await finish.promise
    })
    await begun.promise
    const claimed = claimKey(db, row, 0)
    // With SQLite, transactions run one at a time.
    if (dialectTraits(db).locksRows) await waitUntil('the claim waits for the row', () => countWaiting(db))
    finish.resolve()
    await stored
    t.match(await claimed, { status: 202, body: '{}' })
  })

  await t.test('of several coordinators, one runs a request with a key', async (t) => {
    const db = await newDb(t)
    const actor = await createOwner(db)
    const request = { header: 'k', route: 'POST /things', actor, params: {}, body: {}, status: 202 }
    const createRunner = (id: string) =>
      createIdempotentRunner({ db, clock: systemClock, replica: createFakeReplica(id) })
    const [first, second] = [createRunner('rep_first'), createRunner('rep_second')]
    await addReplica(db, 'rep_first', 60 * 60_000)
    await addReplica(db, 'rep_second', 60 * 60_000)
    const id = { workspace_id: actor.workspaceId, route: request.route, key: 'k' }
    let runs = 0
    const run = async () => ({ runs: ++runs })
    t.match(await first(request, run), { status: 202, replayed: false })
    t.match(await second(request, run), { status: 202, replayed: true, body: '{"runs":1}' })
    await db.updateTable('idempotency_keys').set({ status: null, body: null }).execute()
    await t.rejects(second(request, run), { code: 'idempotency_in_progress' })
    await addReplica(db, 'rep_first', -1)
    t.match(await second(request, run), { replayed: false }, 'the first one is not alive any more')
    t.equal(runs, 2)
    // The first coordinator lost its lease while it ran the request: it stores nothing.
    await db.updateTable('idempotency_keys').set({ status: null, body: null }).execute()
    const late = transaction(db, (trx) => saveResponse(trx, id, { status: 202, body: '{}' }, 'rep_first'))
    t.equal(await late, false)
  })
})

t.test('an error response stores neither the key nor the writes', async (t) => {
  const { post, countRows, insertHandler } = await setUp(t)
  insertHandler.beforeResponse = async () => {
    throw new ApiError('name_taken')
  }
  t.equal((await post({ name: 'a' }, 'k')).status, 409)
  insertHandler.beforeResponse = async () => {
    throw new Error('simulated failure')
  }
  t.equal((await post({ name: 'a' }, 'k')).status, 500)
  t.equal(await countRows(), 0)
  insertHandler.beforeResponse = async () => {}
  t.equal((await post({ size: 'x' }, 'k')).status, 400)
  const response = await post({ name: 'other' }, 'k')
  t.equal(response.status, 202)
  t.equal(response.headers.get('idempotent-replayed'), null)
})

t.test('treats a key as new after 24 hours', async (t) => {
  const { post, advance, insertHandler } = await setUp(t)
  await post({}, 'k')
  advance(LIMITS.idempotencyWindowMs - 1)
  t.equal((await post({}, 'k')).headers.get('idempotent-replayed'), 'true')
  advance(1)
  t.equal((await post({ name: 'different' }, 'k')).status, 202)
  t.equal(insertHandler.runs, 2)
})

t.test('rejects a malformed key', async (t) => {
  const { post } = await setUp(t)
  for (const key of ['', 'a b', 'a'.repeat(129), 'é']) {
    const response = await post({}, key)
    t.equal(response.status, 400, JSON.stringify(key))
    t.equal(response.json.error, 'invalid_idempotency_key')
  }
  t.equal((await post({}, '~'.repeat(128))).status, 202)
})
