// Spec §4.4 and §7.1: access to the command history, and the error responses for invalid requests.
import t, { type Test } from 'tap'
import type { AccessLevels } from '../../shared/api/account.ts'
import { newUuid } from '../../shared/ids.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('access and validation of the command history routes', async (t) => {
  const coordinator = sharedCoordinator
  const { api, box, exec } = coordinator
  const { commandId: id } = await exec('echo something')
  const commandsPath = `/boxes/${box.id}/commands`
  const routes = [
    ['GET', commandsPath],
    ['GET', `${commandsPath}/${id}`],
    ['GET', `${commandsPath}/${id}/output`],
    ['DELETE', `${commandsPath}/${id}`],
    ['DELETE', commandsPath],
  ] as const
  const expectFromAllRoutes = async (t: Test, key: string | null, status: number, json: object) => {
    for (const [method, path] of routes)
      t.match(await api(method, path, undefined, { key }), { status, json }, `${method} ${path}`)
  }

  await t.test(
    'a limited key needs write access to boxes, or to read, read access to the history',
    async (t) => {
      const createKey = (access: AccessLevels) => createLimitedKey(coordinator, { access })
      const others: AccessLevels[] = [{ boxes: 'read' }, { boxes: 'run', workspace: 'write' }]
      const keys = await Promise.all(others.map(createKey))
      const auditor = await createKey({ history: 'read' })
      const accessDenied = {
        status: 403,
        json: { error: 'key_access_denied', area: 'boxes', level: 'write' },
      }
      for (const [method, path] of routes) {
        for (const key of keys)
          t.match(await api(method, path, undefined, { key }), accessDenied, `${method} ${path}`)
        t.match(
          await api(method, path, undefined, { key: auditor }),
          method === 'GET' ? { status: 200 } : accessDenied,
          `${method} ${path} by a key that reads the history`,
        )
      }
      const writeKey = await createKey({ boxes: 'write' })
      t.equal((await api('GET', commandsPath, undefined, { key: writeKey })).status, 200)
      t.equal((await api('GET', '/boxes', undefined, { key: auditor })).status, 403, 'it reads no boxes')
    },
  )

  await t.test('a key limited to other boxes gets 404; a key limited to this box works', async (t) => {
    await expectFromAllRoutes(t, await createLimitedKey(coordinator, { boxIds: [newUuid()] }), 404, {
      error: 'not_found',
    })
    const boxKey = await createLimitedKey(coordinator, { boxIds: [box.id] })
    t.match(await api('GET', commandsPath, undefined, { key: boxKey }), {
      status: 200,
      json: { commands: [{ id }] },
    })
  })

  await t.test('a missing, unknown or expired key gets 401', async (t) => {
    await expectFromAllRoutes(t, null, 401, { error: 'unauthorized' })
    await expectFromAllRoutes(t, 'dcp_wrong', 401, { error: 'unauthorized' })
    await expectFromAllRoutes(t, await createLimitedKey(coordinator, { expiresAt: 1 }), 401, {
      error: 'token_expired',
    })
  })

  await t.test('unknown and malformed box and command ids get 404', async (t) => {
    const unknownBoxId = newUuid()
    for (const path of [
      `/boxes/${unknownBoxId}/commands`,
      `/boxes/${box.hostname}/commands`,
      `/boxes/${unknownBoxId}/commands/${id}`,
      `/boxes/${unknownBoxId}/commands/${id}/output`,
      `${commandsPath}/p_000000000000000000000000`,
      `${commandsPath}/p_`,
      `${commandsPath}/x/output`,
      `${commandsPath}/${'p_'.repeat(300)}`,
    ])
      t.match(await api('GET', path), { status: 404, json: { error: 'not_found' } }, path)
    for (const path of [
      `/boxes/${unknownBoxId}/commands`,
      `/boxes/${unknownBoxId}/commands/${id}`,
      `${commandsPath}/p_x`,
    ])
      t.match(await api('DELETE', path), { status: 404, json: { error: 'not_found' } }, path)
    t.equal((await api('POST', commandsPath, {})).status, 405, 'the path has no POST route')
  })

  await t.test('invalid query parameters get 400', async (t) => {
    const invalid = [
      ...['0', '201', '1.5', '-1', 'x', ''].map((limit) => `${commandsPath}?limit=${limit}`),
      `${commandsPath}?mode=both`,
      `${commandsPath}?status=done`,
      ...['0', '1048577', 'x', '-5'].map((limit) => `${commandsPath}/${id}/output?limit=${limit}`),
      ...['-1', '1.5', 'x', '1e300'].map((offset) => `${commandsPath}/${id}/output?offset=${offset}`),
      `${commandsPath}/${id}/output?stream=both`,
      `${commandsPath}/${id}/output?encoding=hex`,
    ]
    for (const path of invalid)
      t.match(await api('GET', path), { status: 400, json: { error: 'bad_request' } }, path)
    for (const before of ['x', '', 'MTIz'])
      t.match(
        await api('GET', `${commandsPath}?before=${before}`),
        { status: 400, json: { error: 'invalid_cursor' } },
        before,
      )
    for (const path of [
      `${commandsPath}?limit=200&mode=sync&status=exited`,
      `${commandsPath}/${id}/output?limit=1048576&stream=stderr&offset=0&encoding=utf8`,
    ])
      t.equal((await api('GET', path)).status, 200, path)
  })

  await t.test('deletes one record, then all', async (t) => {
    const otherCommands = [await exec('true'), await exec('true')]
    t.match(await api('DELETE', `${commandsPath}/${id}`), { status: 204, text: '' })
    t.equal((await api('GET', `${commandsPath}/${id}`)).status, 404)
    t.equal((await api('DELETE', `${commandsPath}/${id}`)).status, 204, 'a repeated delete succeeds')
    const firstPage = (await api('GET', `${commandsPath}?limit=1`)).json
    t.equal(firstPage.commands[0].id, otherCommands[1]?.commandId)
    const lastPage = (await api('GET', `${commandsPath}?limit=1&before=${firstPage.nextBefore}`)).json
    t.match(lastPage, { commands: [{ id: otherCommands[0]?.commandId }], nextBefore: null })
    t.match(await api('DELETE', commandsPath), { status: 200, json: { deleted: 2 } })
    t.match(await api('DELETE', commandsPath), { status: 200, json: { deleted: 0 } })
    t.same((await api('GET', commandsPath)).json, { commands: [], nextBefore: null })
    const auditEvents = await coordinator.instance.context.db
      .selectFrom('audit_log')
      .selectAll()
      .where('kind', '=', 'command_history.delete')
      .orderBy('no')
      .execute()
    t.match(auditEvents, [
      { kind: 'command_history.delete', box_id: box.id, detail: JSON.stringify({ commandId: id }) },
      { kind: 'command_history.delete', box_id: box.id },
    ])
  })
})
