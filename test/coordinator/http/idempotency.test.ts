// Idempotency-Key, every row of the spec's table (§4.1.6), and what a death in the middle leaves.
import t from 'tap'
import { z } from 'zod'
import { releaseUnfinished } from '../../../coordinator/http/idempotency-store.ts'
import { route } from '../../../coordinator/http/route.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { actor, testServer } from './server.ts'

/** A route that makes something each time it runs: a row, which is only there when its transaction committed. */
function maker() {
  const control = {
    runs: 0,
    /** Awaited by each run before it answers. */
    before: async () => {},
  }
  const make = (path: string, params?: z.ZodType) =>
    route({
      method: 'POST',
      path,
      summary: 'Makes a thing',
      request: {
        body: z.object({ name: z.string().optional(), size: z.number().optional() }),
        ...(params && { params }),
      },
      idempotent: true,
      answers: { 202: z.object({}) },
      async handle({ trx, body }) {
        control.runs += 1
        const id = `ws_made_${control.runs}`
        await trx
          ?.insertInto('workspaces')
          .values({ id, name: String(body.name), zero_data_retention: 0, created_at: 1 })
          .execute()
        await control.before()
        return { id, body }
      },
    })
  return { control, routes: [make('/things'), make('/things/:id/copy', z.object({ id: z.string() }))] }
}

async function setUp(t: Parameters<typeof testServer>[0]) {
  const { control, routes } = maker()
  let now = Date.UTC(2030, 0, 1)
  const server = await testServer(t, {
    control: routes,
    clock: { now: () => now },
    keys: {
      dcp_second_key: { actor: { ...actor, keyId: 'key_2' } },
      dcp_other_member: { actor: { ...actor, userId: 'usr_2' } },
      dcp_demoted: { actor: { ...actor, role: 'member' } },
      dcp_scope_ab: { actor: { ...actor, boxIds: ['a', 'b'] } },
      dcp_scope_ba: { actor: { ...actor, boxIds: ['b', 'a'] } },
      dcp_elsewhere: { actor: { ...actor, workspaceId: 'ws_2' } },
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
  const made = async () =>
    (await server.db.selectFrom('workspaces').where('id', 'like', 'ws_made_%').select('id').execute()).length
  return { ...server, control, post, made, advance }
}

t.test('the same request is answered again and done once', async (t) => {
  const { post, made, control } = await setUp(t)
  const first = await post({ name: 'a', size: 1 }, 'k')
  t.equal(first.status, 202)
  t.equal(first.headers.get('idempotent-replayed'), null)
  const again = await post('{ "size": 1, "name": "a" }', 'k')
  t.equal(again.status, 400, 'a text without its content type is no JSON')
  const replay = await post({ size: 1, name: 'a' }, 'k')
  t.equal(replay.status, 202)
  t.equal(replay.text, first.text)
  t.equal(replay.headers.get('idempotent-replayed'), 'true')
  t.equal((await post({ name: 'a', size: 1 }, 'k', { key: 'dcp_second_key' })).text, first.text)
  t.equal(control.runs, 1)
  t.equal(await made(), 1)
})

t.test('a key on a different request is refused', async (t) => {
  const { post, made } = await setUp(t)
  await post({ name: 'a' }, 'k')
  for (const [what, body, where] of [
    ['another body', { name: 'b' }, {}],
    ['another member', { name: 'a' }, { key: 'dcp_other_member' }],
    ['another role', { name: 'a' }, { key: 'dcp_demoted' }],
    ['another scope', { name: 'a' }, { key: 'dcp_scope_ab' }],
  ] as const) {
    const answer = await post(body, 'k', where)
    t.equal(answer.status, 422, what)
    t.equal(answer.json.error, 'idempotency_key_reused')
  }
  await post({ name: 'a' }, 'path', { path: '/things/1/copy' })
  t.equal((await post({ name: 'a' }, 'path', { path: '/things/2/copy' })).status, 422, 'another path id')
  t.equal(await made(), 2)
})

t.test('a key is scoped to its route and workspace, and the order of box ids does not matter', async (t) => {
  const { post, made } = await setUp(t)
  await post({}, 'k')
  t.equal((await post({}, 'k', { path: '/things/1/copy' })).headers.get('idempotent-replayed'), null)
  t.equal((await post({}, 'k', { key: 'dcp_elsewhere' })).headers.get('idempotent-replayed'), null)
  await post({}, 'scoped', { key: 'dcp_scope_ab' })
  t.equal((await post({}, 'scoped', { key: 'dcp_scope_ba' })).headers.get('idempotent-replayed'), 'true')
  t.equal(await made(), 4)
})

t.test('while the first request runs, the second is told to come back', async (t) => {
  const { post, control } = await setUp(t)
  const reached = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  control.before = () => {
    reached.resolve()
    return finish.promise
  }
  const first = post({ name: 'a' }, 'k')
  await reached.promise
  const second = await post({ name: 'a' }, 'k')
  t.equal(second.status, 409)
  t.equal(second.json.error, 'idempotency_in_progress')
  t.match(second.headers.get('retry-after'), /^\d+$/)
  t.equal((await post({ name: 'b' }, 'k')).status, 422)
  finish.resolve()
  const answer = await first
  t.equal(answer.status, 202)
  t.equal((await post({ name: 'a' }, 'k')).text, answer.text)
  t.equal(control.runs, 1)
})

t.test('a request of another process that died: 409 until the next start frees its key', async (t) => {
  const { post, db, control } = await setUp(t)
  await post({ name: 'a' }, 'k')
  await db.updateTable('idempotency_keys').set({ status: null, body: null }).execute()
  const answer = await post({ name: 'a' }, 'k')
  t.equal(answer.status, 409)
  t.equal(answer.json.error, 'idempotency_in_progress')
  t.match(answer.headers.get('retry-after'), /^\d+$/)
  await releaseUnfinished(db)
  t.equal((await post({ name: 'a' }, 'k')).status, 202)
  t.equal(control.runs, 2)
})

t.test('a refusal or failure keeps nothing, of the key or of the work', async (t) => {
  const { post, made, control } = await setUp(t)
  control.before = async () => {
    throw new ApiError('name_taken')
  }
  t.equal((await post({ name: 'a' }, 'k')).status, 409)
  control.before = async () => {
    throw new Error('broken')
  }
  t.equal((await post({ name: 'a' }, 'k')).status, 500)
  t.equal(await made(), 0)
  control.before = async () => {}
  t.equal((await post({ size: 'x' }, 'k')).status, 400)
  const answer = await post({ name: 'other' }, 'k')
  t.equal(answer.status, 202)
  t.equal(answer.headers.get('idempotent-replayed'), null)
})

t.test('after 24 hours a key is new', async (t) => {
  const { post, advance, control } = await setUp(t)
  await post({}, 'k')
  advance(LIMITS.idempotencyWindowMs - 1)
  t.equal((await post({}, 'k')).headers.get('idempotent-replayed'), 'true')
  advance(1)
  t.equal((await post({ name: 'different' }, 'k')).status, 202)
  t.equal(control.runs, 2)
})

t.test('a malformed key', async (t) => {
  const { post } = await setUp(t)
  for (const key of ['', 'a b', 'a'.repeat(129), 'é']) {
    const answer = await post({}, key)
    t.equal(answer.status, 400, JSON.stringify(key))
    t.equal(answer.json.error, 'invalid_idempotency_key')
  }
  t.equal((await post({}, '~'.repeat(128))).status, 202)
})
