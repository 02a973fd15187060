// Spec §4.4 and §7.1: who may read the command history, and what a request that is off is answered with.
import t, { type Test } from 'tap'
import { newUuid } from '../../shared/ids.ts'
import { keyWith } from '../support/limited-key.ts'
import { edgeBox } from './edge-box.ts'

t.test('who may, and what is refused', async (t) => {
  const coordinator = await edgeBox(t)
  const { api, box, exec } = coordinator
  const { commandId: id } = await exec('echo something')
  const base = `/boxes/${box.id}/commands`
  const routes = [
    ['GET', base],
    ['GET', `${base}/${id}`],
    ['GET', `${base}/${id}/output`],
    ['DELETE', `${base}/${id}`],
    ['DELETE', base],
  ] as const
  const each = async (t: Test, key: string | null, status: number, json: object) => {
    for (const [method, path] of routes)
      t.match(await api(method, path, undefined, { key }), { status, json }, `${method} ${path}`)
  }

  await t.test('a limited key needs to write boxes, to read as well', async (t) => {
    const lacking = { error: 'key_access_denied', area: 'boxes', level: 'write' }
    await each(t, await keyWith(coordinator, { access: { boxes: 'read' } }), 403, lacking)
    await each(t, await keyWith(coordinator, { access: { workspace: 'write' } }), 403, lacking)
    const writer = await keyWith(coordinator, { access: { boxes: 'write' } })
    t.equal((await api('GET', base, undefined, { key: writer })).status, 200)
  })

  await t.test('a key for other boxes finds nothing; one for this box does', async (t) => {
    await each(t, await keyWith(coordinator, { boxIds: [newUuid()] }), 404, { error: 'not_found' })
    const own = await keyWith(coordinator, { boxIds: [box.id] })
    t.match(await api('GET', base, undefined, { key: own }), { status: 200, json: { commands: [{ id }] } })
  })

  await t.test('no key, a dead key', async (t) => {
    await each(t, null, 401, { error: 'unauthorized' })
    await each(t, 'dcp_wrong', 401, { error: 'unauthorized' })
    await each(t, await keyWith(coordinator, { expiresAt: 1 }), 401, { error: 'token_expired' })
  })

  await t.test('ids that are unknown, malformed or of another box', async (t) => {
    const other = newUuid()
    for (const path of [
      `/boxes/${other}/commands`,
      `/boxes/${box.hostname}/commands`,
      `/boxes/${other}/commands/${id}`,
      `/boxes/${other}/commands/${id}/output`,
      `${base}/p_000000000000000000000000`,
      `${base}/p_`,
      `${base}/x/output`,
      `${base}/${'p_'.repeat(300)}`,
    ])
      t.match(await api('GET', path), { status: 404, json: { error: 'not_found' } }, path)
    for (const path of [`/boxes/${other}/commands`, `/boxes/${other}/commands/${id}`, `${base}/p_x`])
      t.match(await api('DELETE', path), { status: 404, json: { error: 'not_found' } }, path)
    t.equal((await api('POST', base, {})).status, 405)
  })

  await t.test('queries that are off', async (t) => {
    const bad = [
      ...['0', '201', '1.5', '-1', 'x', ''].map((limit) => `${base}?limit=${limit}`),
      ...['x', '', 'MTIz'].map((before) => `${base}?before=${before}`),
      `${base}?mode=both`,
      `${base}?status=done`,
      ...['0', '1048577', 'x', '-5'].map((limit) => `${base}/${id}/output?limit=${limit}`),
      ...['-1', '1.5', 'x', '1e300'].map((offset) => `${base}/${id}/output?offset=${offset}`),
      `${base}/${id}/output?stream=both`,
      `${base}/${id}/output?encoding=hex`,
    ]
    for (const path of bad)
      t.match(await api('GET', path), { status: 400, json: { error: 'bad_request' } }, path)
    for (const path of [
      `${base}?limit=200&mode=sync&status=exited`,
      `${base}/${id}/output?limit=1048576&stream=stderr&offset=0&encoding=utf8`,
    ])
      t.equal((await api('GET', path)).status, 200, path)
  })

  await t.test('deleting', async (t) => {
    const more = [await exec('true'), await exec('true')]
    t.match(await api('DELETE', `${base}/${id}`), { status: 204, text: '' })
    t.equal((await api('GET', `${base}/${id}`)).status, 404)
    t.equal((await api('DELETE', `${base}/${id}`)).status, 204, 'idempotent')
    const pages = (await api('GET', `${base}?limit=1`)).json
    t.equal(pages.commands[0].id, more[1]?.commandId)
    const last = (await api('GET', `${base}?limit=1&before=${pages.nextBefore}`)).json
    t.match(last, { commands: [{ id: more[0]?.commandId }], nextBefore: null })
    t.match(await api('DELETE', base), { status: 200, json: { deleted: 2 } })
    t.match(await api('DELETE', base), { status: 200, json: { deleted: 0 } })
    t.same((await api('GET', base)).json, { commands: [], nextBefore: null })
    const rows = await coordinator.coordinator.context.db.selectFrom('audit_events').selectAll().execute()
    t.match(rows, [
      { kind: 'command_history.delete', box_id: box.id, detail: JSON.stringify({ commandId: id }) },
      { kind: 'command_history.delete', box_id: box.id },
    ])
  })
})
