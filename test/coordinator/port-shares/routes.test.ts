// The answers of the routes of shared ports (spec §2.7, §4.5, §7.1).
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import type { PortAudience, PortShare } from '../../../shared/api/port-shares.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../../support/limited-key.ts'
import { createTestSession } from '../../support/session.ts'
import { createTestClock } from '../../support/workspace.ts'

const WEEK_MS = 604_800_000
const SLUG = /^fig-\d+-[2-9a-z]{10}$/

async function start(t: Test, env: Record<string, string> = {}) {
  const clock = createTestClock(Date.now())
  const coordinator = await startTestCoordinator(t, {
    clock,
    env: { BOXWOOD_SHARE_BASE: 'boxes.example.com', ...env },
  })
  const { api, instance } = coordinator
  const { id: boxId } = (await api('POST', '/boxes', { name: 'fig' })).json.box
  const { db } = instance.context
  const share = (body: unknown, options?: Parameters<typeof api>[3]) => {
    // Lists are ordered by time.
    clock.advance(1)
    return api('POST', `/boxes/${boxId}/port-shares`, body, options)
  }
  const list = async (options?: Parameters<typeof api>[3]) =>
    (await api('GET', `/boxes/${boxId}/port-shares`, undefined, options)).json
  const listIds = async (): Promise<string[]> => (await list()).shares.map(({ id }: PortShare) => id)
  const listEvents = async () =>
    (await api('GET', '/audit?kind=port_share.create,port_share.update,port_share.revoke')).json.events
      .map(({ kind, detail, boxId }: { kind: string; detail: object; boxId: string }) => ({
        kind,
        boxId,
        ...detail,
      }))
      .reverse()
  const { workspaceId = '' } = instance.owner ?? {}
  const setPolicy = async (policy: object) =>
    t.equal(
      (await api('PATCH', '/workspace/policies', policy, await createTestSession(coordinator))).status,
      200,
    )
  return {
    ...{ coordinator, api, instance, db, clock, boxId, workspaceId },
    ...{ share, list, listIds, listEvents, setPolicy },
  }
}

t.test('a link for members', async (t) => {
  const { share, api, boxId, instance, clock, list, listEvents } = await start(t)
  const created = await share({ port: 3000 })
  t.equal(created.status, 201)
  const { slug } = created.json.share
  t.match(slug, SLUG)
  const expected = {
    id: created.json.share.id,
    boxId,
    hostname: 'fig',
    port: 3000,
    slug,
    access: 'members',
    url: `https://${slug}.boxes.example.com/`,
    origin: `https://${slug}.boxes.example.com`,
    rewriteHost: false,
    expiresAt: null,
    createdBy: `user:${instance.owner?.userId}`,
    createdAt: new Date(clock.now()).toISOString(),
    openCount: 0,
    lastOpenedAt: null,
  }
  t.match(expected.id, /^shr_/)
  t.same(created.json, { share: expected })

  for (const body of [{ port: 3000 }, { port: 3000, access: 'members' }])
    t.match(await share(body), { status: 200, json: { share: expected } }, 'unchanged')
  t.match(await share({ port: 3000, rewriteHost: true }), {
    status: 200,
    json: { share: { ...expected, rewriteHost: true } },
  })
  t.same((await share({ port: 3000 })).json, { share: { ...expected, rewriteHost: true } })

  await api('PATCH', `/boxes/${boxId}`, { name: 'plum' })
  const renamed = { ...expected, hostname: 'plum', rewriteHost: true }
  t.same((await list()).shares, [renamed], 'the link stays when the box is renamed')
  const common = { boxId, shareId: expected.id, port: 3000, access: 'members' }
  t.same(await listEvents(), [
    { kind: 'port_share.create', ...common },
    { kind: 'port_share.update', ...common, rewriteHost: true },
  ])
})

t.test('a link for anyone contains a secret, which only its creation returns', async (t) => {
  const { share, list, clock, db, instance, api } = await start(t)
  const { status, json } = await share({ port: 8080, access: 'anyone' })
  t.equal(status, 201)
  const { url, origin, slug } = json.share
  const [, secret = ''] = /^\/\?boxwood_secret=([\w-]{32})$/.exec(url.slice(origin.length)) ?? []
  t.ok(url.startsWith(origin) && secret !== '', url)
  t.equal(json.share.expiresAt, new Date(clock.now() + WEEK_MS).toISOString())
  t.same((await list()).shares, [{ ...json.share, url: null }])
  t.same((await share({ port: 8080, access: 'anyone' })).json, { share: { ...json.share, url: null } })
  t.same((await api('GET', '/port-shares')).json.shares, [{ ...json.share, url: null }])
  t.notOk(JSON.stringify(await db.selectFrom('port_shares').selectAll().execute()).includes(secret))
  t.notOk(JSON.stringify(await db.selectFrom('audit_log').selectAll().execute()).includes(secret))

  const found = await instance.context.portShares.find(slug)
  t.match(found?.share, { id: json.share.id, access: 'anyone', port: 8080, secretHash: /^[0-9a-f]{64}$/ })
})

t.test('a port has one link: another audience replaces it', async (t) => {
  const { coordinator, share, listIds, list, listEvents, instance, boxId } = await start(t)
  const ended: string[] = []
  instance.context.portShares.events.on('ended', (id) => ended.push(id))
  const other = (await share({ port: 1 })).json.share
  const first = (await share({ port: 3000 })).json.share
  const second = await share({ port: 3000, access: 'public', expiresIn: 300 })
  t.equal(second.status, 201)
  t.same(second.json.replaced, { id: first.id, access: 'members' })
  t.equal(second.json.share.url, `${second.json.share.origin}/`)
  t.not(second.json.share.slug, first.slug)
  t.match(await share({ port: 3000 }), { status: 200, json: { share: { id: second.json.share.id } } })
  const member = { key: await createUserKey(coordinator, 'member') }
  t.match(
    await share({ port: 3000, access: 'public' }, member),
    { status: 200, json: { share: { id: second.json.share.id } } },
    'the link exists: a member gets it too',
  )
  const third = await share({ port: 3000, access: 'members' })
  t.same(third.json.replaced, { id: second.json.share.id, access: 'public' })
  t.same(await listIds(), [other.id, third.json.share.id], 'oldest first')
  t.same(
    (await list()).shares.map(({ access }: PortShare) => access),
    ['members', 'members'],
  )
  t.same(ended, [first.id, second.json.share.id])
  t.equal(await instance.context.portShares.find(first.slug), undefined)
  const event = (kind: string, { id, access }: PortShare) =>
    ({ kind, boxId, shareId: id, port: 3000, access }) as const
  t.same((await listEvents()).slice(1), [
    event('port_share.create', first),
    event('port_share.revoke', first),
    event('port_share.create', second.json.share),
    event('port_share.revoke', second.json.share),
    event('port_share.create', third.json.share),
  ])
})

t.test('invalid requests', async (t) => {
  const { share, listIds } = await start(t)
  const cases: [body: unknown, message: RegExp][] = [
    [{}, /^port is required/],
    [{ port: 0 }, /^port must be an integer between 1 and 65535/],
    [{ port: 65_536 }, /^port must be an integer/],
    [{ port: '3000' }, /^port must be an integer/],
    [{ port: 30.5 }, /^port must be an integer/],
    [{ port: 3000, access: 'all' }, /^access must be one of members, anyone, public/],
    [{ port: 3000, access: null }, /^access must be one of/],
    [
      { port: 3000, access: 'anyone', expiresIn: 299 },
      /^expiresIn must be an integer between 300 and 2592000/,
    ],
    [{ port: 3000, access: 'public', expiresIn: 2_592_001 }, /^expiresIn must be/],
    [{ port: 3000, access: 'members', expiresIn: 300 }, /^expiresIn must be given only with access anyone/],
    [{ port: 3000, expiresIn: 300 }, /^expiresIn must be given only/],
    [{ port: 3000, rewriteHost: 'yes' }, /^rewriteHost must be true or false/],
    [{ port: 3000, name: 'web' }, /^unknown field name/],
    ['3000', /./],
  ]
  for (const [body, message] of cases)
    t.match(await share(body), { status: 400, json: { error: 'bad_request', message } }, JSON.stringify(body))
  t.same(await listIds(), [])
  t.equal((await share({ port: 3000, access: 'anyone', expiresIn: 2_592_000 })).status, 201)
})

t.test('a link ends when it expires', async (t) => {
  const { share, listIds, clock, instance, list, db } = await start(t)
  const { portShares } = instance.context
  const ended: string[] = []
  portShares.events.on('ended', (id) => ended.push(id))
  const { id, slug } = (await share({ port: 3000, access: 'public', expiresIn: 300 })).json.share
  clock.advance(299_999)
  t.equal((await portShares.find(slug))?.share.id, id)
  t.equal((await portShares.find(slug))?.share.expiresAt, clock.now() + 1)
  clock.advance(1)
  t.equal(await portShares.find(slug), undefined)
  t.same(await listIds(), [])
  const next = await share({ port: 3000 })
  t.equal(next.status, 201)
  t.equal(next.json.replaced, undefined, 'an expired link is not replaced')
  t.match((await list()).shares, [{ id: next.json.share.id, access: 'members' }])
  t.same(ended, [], 'the server of links knows the time of the expiry')
  t.equal((await db.selectFrom('port_shares').select('id').execute()).length, 2)
})

t.test('a link is revoked by everyone who may change the box', async (t) => {
  const { share, api, coordinator, instance, listIds, listEvents } = await start(t)
  const ended: string[] = []
  instance.context.portShares.events.on('ended', (id) => ended.push(id))
  const { id, slug } = (await share({ port: 3000, access: 'public' })).json.share
  const contractor = { key: await createUserKey(coordinator, 'contractor') }
  const revoke = (shareId: string, options?: Parameters<typeof api>[3]) =>
    api('DELETE', `/port-shares/${shareId}`, undefined, options)
  for (const unknown of ['shr_0123456789abcdef01234567', 'fig', `${id}%00`, crypto.randomUUID()])
    t.match(await revoke(unknown), { status: 404, json: { error: 'not_found' } })
  t.match(await revoke(id, contractor), { status: 404, json: { error: 'not_found' } })
  const readOnly = { key: await createLimitedKey(coordinator, { access: { boxes: 'run' } }) }
  t.match(await revoke(id, readOnly), { status: 403, json: { error: 'key_access_denied' } })
  t.same(await listIds(), [id])

  const member = { key: await createUserKey(coordinator, 'member') }
  const { status, json } = await revoke(id, member)
  t.equal(status, 200)
  t.same(json, { revoked: true })
  t.same(await listIds(), [])
  t.equal(await instance.context.portShares.find(slug), undefined)
  t.same((await revoke(id)).json, { revoked: true }, 'again')
  t.same(ended, [id])
  t.equal((await listEvents()).filter(({ kind }: { kind: string }) => kind === 'port_share.revoke').length, 1)
})

t.test('lists have the links of the boxes that the caller sees', async (t) => {
  const { share, api, coordinator, boxId, list, clock } = await start(t)
  const contractor = { key: await createUserKey(coordinator, 'contractor') }
  const { id: ownBox } = (await api('POST', '/boxes', { name: 'own' }, contractor)).json.box
  const first = (await share({ port: 3000 })).json.share.id
  clock.advance(1)
  const { status, json } = await api('POST', `/boxes/${ownBox}/port-shares`, { port: 22 }, contractor)
  t.equal(status, 201, 'a contractor shares ports of own boxes with members')
  const second = json.share.id
  t.equal((await share({ port: 3000 }, contractor)).status, 404)
  t.equal((await api('GET', `/boxes/${boxId}/port-shares`, undefined, contractor)).status, 404)
  const listAll = async (options?: Parameters<typeof api>[3]) =>
    (await api('GET', '/port-shares', undefined, options)).json.shares.map(({ id }: PortShare) => id)
  t.same(await listAll(), [first, second])
  t.same(await listAll(contractor), [second])
  const limited = { key: await createLimitedKey(coordinator, { boxIds: [boxId] }) }
  t.same(await listAll(limited), [first])
  t.same(await listAll({ key: await createLimitedKey(coordinator, { boxIds: [] }) }), [])
  t.match(await list(), { shares: [{ id: first }] })
  const { json: all } = await api('GET', '/port-shares')
  t.match(all, { enabled: true, linksEnabled: true, modes: { members: { allowed: true } } })
  t.notOk('listening' in all)
})

t.test('a list with many links is complete', async (t) => {
  const { share, api, list, db } = await start(t)
  const { id } = (await share({ port: 1 })).json.share
  const row = await db.selectFrom('port_shares').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const rows = Array.from({ length: 250 }, (_, n) => ({
    ...row,
    ...{ id: `shr_${String(n).padStart(24, '0')}`, port: n + 2, slug: `slug-${n}` },
    // Some have the same time.
    created_at: row.created_at + Math.floor(n / 30),
  }))
  await db.insertInto('port_shares').values(rows).execute()
  const ports = async (shares: PortShare[]) => shares.map(({ port }) => port).sort((a, b) => a - b)
  const expected = Array.from({ length: 251 }, (_, n) => n + 1)
  t.same(await ports((await list()).shares), expected)
  t.same(await ports((await api('GET', '/port-shares')).json.shares), expected)
})

t.test('the links of all boxes page by page, newest first', async (t) => {
  const { share, api, listIds } = await start(t)
  for (const port of [3000, 3001, 3002, 3003, 3004]) await share({ port })
  const newest = (await listIds()).reverse()
  const pages: string[][] = []
  let before: string | null = ''
  while (before !== null) {
    const { status, json } = await api('GET', `/port-shares?limit=2${before && `&before=${before}`}`)
    t.equal(status, 200)
    t.match(json, { enabled: true, linksEnabled: true, modes: { members: { allowed: true } } })
    pages.push(json.shares.map(({ id }: PortShare) => id))
    before = json.nextBefore
  }
  t.same(pages, [newest.slice(0, 2), newest.slice(2, 4), newest.slice(4)])
  const { json: whole } = await api('GET', '/port-shares')
  t.same(
    whole.shares.map(({ id }: PortShare) => id),
    newest.reverse(),
  )
  t.notOk('nextBefore' in whole)
  for (const [query, error] of [
    ['limit=0', 'bad_request'],
    ['limit=201', 'bad_request'],
    ['before=x', 'invalid_cursor'],
  ] as const)
    t.match(await api('GET', `/port-shares?${query}`), { status: 400, json: { error } }, query)
})

t.test('deleting a box ends its links', async (t) => {
  const { share, api, boxId, instance, listIds } = await start(t)
  const ended: string[] = []
  const { portShares } = instance.context
  portShares.events.on('ended', (id) => ended.push(id))
  const { id, slug } = (await share({ port: 3000 })).json.share
  t.equal((await api('POST', `/boxes/${boxId}/suspend`)).status, 202)
  t.match(await portShares.find(slug), { share: { id }, box: { id: boxId } }, 'suspending it does not')
  t.same(await listIds(), [id])
  await api('DELETE', `/boxes/${boxId}`)
  t.equal(await portShares.find(slug), undefined)
  t.same(ended, [id])
  t.same(await listIds(), [])
  t.same((await api('GET', '/port-shares')).json.shares, [])
  t.match(await share({ port: 3000 }), { status: 404, json: { error: 'not_found' } })
  t.same((await api('DELETE', `/port-shares/${id}`)).json, { revoked: true })
})

t.test('a closing workspace accepts no new links', async (t) => {
  const { share, db, workspaceId, list } = await start(t)
  const { id } = (await share({ port: 3000 })).json.share
  await db.updateTable('workspaces').set({ closing_at: 1 }).where('id', '=', workspaceId).execute()
  t.match(await share({ port: 3001 }), { status: 409, json: { error: 'workspace_closing' } })
  const { modes, shares } = await list()
  for (const access of ['members', 'anyone', 'public'] as const)
    t.match(modes[access], { allowed: false, error: 'workspace_closing' })
  t.match(shares, [{ id }])
})

t.test('at most ten links of a workspace need no membership', async (t) => {
  const { share, api, list, clock } = await start(t)
  const { id: otherBox } = (await api('POST', '/boxes', { name: 'plum' })).json.box
  for (let n = 0; n < 9; n++)
    t.equal((await share({ port: 3000 + n, access: n % 2 === 0 ? 'anyone' : 'public' })).status, 201)
  await api('POST', `/boxes/${otherBox}/port-shares`, { port: 1, access: 'anyone', expiresIn: 300 })
  for (const access of ['anyone', 'public'])
    t.match(await share({ port: 4000, access }), { status: 409, json: { error: 'share_link_limit' } })
  t.equal((await share({ port: 4000 })).status, 201, 'a link for members')
  t.match(
    await share({ port: 4000, access: 'anyone' }),
    { status: 409 },
    'a link for members is not replaced by an eleventh',
  )
  t.match((await list()).shares.at(-1), { port: 4000, access: 'members' })
  const denied = { allowed: false, error: 'share_link_limit', message: String }
  t.match((await list()).modes, { members: { allowed: true }, anyone: denied, public: denied })
  t.equal((await share({ port: 3000, access: 'public' })).status, 201, 'one of the ten is replaced')
  t.equal((await share({ port: 3001 })).status, 200, 'one of the ten is returned')
  t.equal((await share({ port: 3001, access: 'public' })).status, 200)
  clock.advance(300_000)
  t.equal((await share({ port: 4000, access: 'public' })).status, 201, 'one has expired')
})

t.test('the policy shareLinks turns links off, and on again', async (t) => {
  const { share, list, instance, setPolicy, api } = await start(t)
  const { portShares } = instance.context
  const ended = new Set<string>()
  portShares.events.on('ended', (id) => ended.add(id))
  const links: Record<string, PortShare> = {}
  for (const [port, access] of [
    [1, 'members'],
    [2, 'anyone'],
    [3, 'public'],
  ] as const)
    links[access] = (await share({ port, access })).json.share
  const isServed = async (access: PortAudience) =>
    (await portShares.find(links[access]?.slug ?? '')) !== undefined
  const served = async () => [await isServed('members'), await isServed('anyone'), await isServed('public')]
  t.same(await served(), [true, true, true])

  const ends = new Promise<void>((resolve) => {
    portShares.events.on('ended', () => {
      if (ended.size === 2) resolve()
    })
  })
  await setPolicy({ shareLinks: false })
  t.same(await served(), [true, false, false], 'with the response')
  await ends
  t.same(ended, new Set([links.anyone?.id, links.public?.id]))
  const blocked = { status: 403, json: { error: 'share_links_blocked' } }
  t.match(await share({ port: 4, access: 'public' }), blocked)
  t.match(await share({ port: 3, access: 'public' }), blocked, 'a link that exists')
  t.match(await share({ port: 3 }), blocked, 'a link that exists, without access')
  t.match(await share({ port: 1 }), { status: 200 })
  const { shares, modes, linksEnabled } = await list()
  t.equal(shares.length, 3, 'links that are turned off are listed')
  t.equal(linksEnabled, true, 'the deployment allows links')
  const refusal = { allowed: false, error: 'share_links_blocked', message: String }
  t.match(modes, { members: { allowed: true }, anyone: refusal, public: refusal })
  await t.rejects(portShares.get(instance.owner as Actor, links.public?.id ?? ''), {
    code: 'share_links_blocked',
  })
  t.equal((await api('DELETE', `/port-shares/${links.anyone?.id}`)).status, 200)

  await setPolicy({ shareLinks: null })
  t.same(await served(), [true, false, true])
  t.equal((await share({ port: 3, access: 'public' })).status, 200)
})

t.test('the switches of the deployment', async (t) => {
  const refused = (error: string) => ({ allowed: false, error, message: String })
  await t.test('BOXWOOD_SHARE_LINKS=off', async (t) => {
    const { share, list } = await start(t, { BOXWOOD_SHARE_LINKS: 'off' })
    t.equal((await share({ port: 3000 })).status, 201)
    for (const access of ['anyone', 'public'])
      t.match(await share({ port: 3000, access }), { status: 503, json: { error: 'share_links_disabled' } })
    t.match(await list(), {
      ...{ enabled: true, linksEnabled: false },
      modes: {
        members: { allowed: true },
        anyone: refused('share_links_disabled'),
        public: refused('share_links_disabled'),
      },
    })
  })
  await t.test('BOXWOOD_SHARES=off', async (t) => {
    const { share, list, coordinator, api } = await start(t, { BOXWOOD_SHARES: 'off' })
    for (const body of [{ port: 3000 }, { port: 3000, access: 'members' }])
      t.match(await share(body), { status: 503, json: { error: 'port_share_disabled' } })
    for (const access of ['anyone', 'public'])
      t.match(await share({ port: 3000, access }), { status: 503, json: { error: 'share_links_disabled' } })
    const expected = {
      ...{ enabled: false, linksEnabled: false, shares: [] },
      modes: {
        members: refused('port_share_disabled'),
        anyone: refused('share_links_disabled'),
        public: refused('share_links_disabled'),
      },
    }
    t.match(await list(), expected)
    t.match((await api('GET', '/port-shares')).json, expected)
    const host = 'fig-3000-abc.boxes.example.com'
    const request = get(`${coordinator.url}/healthz`, { headers: { host } })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    t.equal(response.statusCode, 404, 'hosts of links do not reach the API')
    response.resume()
  })
  await t.test('links that exist are not served when the deployment turns them off', async (t) => {
    const first = await start(t)
    const slugs: string[] = []
    for (const [n, access] of ['members', 'anyone', 'public'].entries())
      slugs.push((await first.share({ port: n + 1, access })).json.share.slug)
    await first.coordinator.close()
    const served = async (env: Record<string, string>) => {
      const { dataDir } = first.coordinator
      const { instance, close } = await startTestCoordinator(t, { dataDir, env })
      const found = await Promise.all(slugs.map((slug) => instance.context.portShares.find(slug)))
      await close()
      return found.map((share) => share !== undefined)
    }
    t.same(await served({ BOXWOOD_SHARE_LINKS: 'off' }), [true, false, false])
    t.same(await served({ BOXWOOD_SHARES: 'off' }), [false, false, false])
    t.same(await served({}), [true, true, true])
  })
})

t.test('modes are what a create responds, for each role, policy and switch', async (t) => {
  const ROLES = ['owner', 'member', 'contractor', 'no user'] as const
  for (const env of [{}, { BOXWOOD_SHARE_LINKS: 'off' }, { BOXWOOD_SHARES: 'off' }]) {
    const { coordinator, api, db, setPolicy } = await start(t, env)
    const keys = {
      owner: await createUserKey(coordinator, 'owner'),
      member: await createUserKey(coordinator, 'member'),
      contractor: await createUserKey(coordinator, 'contractor'),
      'no user': await createLimitedKey(coordinator, {}),
    }
    await db
      .updateTable('api_keys')
      .set({ user_id: null })
      .where('hash', '=', hashSecret(keys['no user']))
      .execute()
    for (const shareLinks of [true, false])
      for (const anyoneLinksOwnerOnly of [false, true]) {
        await setPolicy({ shareLinks, anyoneLinksOwnerOnly })
        for (const role of ROLES) {
          const options = { key: keys[role] }
          const { id } = (await api('POST', '/boxes', {}, options)).json.box
          const { modes, enabled, linksEnabled } = (
            await api('GET', `/boxes/${id}/port-shares`, undefined, options)
          ).json
          t.same((await api('GET', '/port-shares', undefined, options)).json.modes, modes)
          for (const access of ['members', 'anyone', 'public'] as const) {
            const name = `${JSON.stringify({ ...env, shareLinks, anyoneLinksOwnerOnly })} ${role} ${access}`
            const { status, json } = await api(
              'POST',
              `/boxes/${id}/port-shares`,
              { port: 3000, access },
              options,
            )
            t.same(
              modes[access],
              status === 201
                ? { allowed: true }
                : { allowed: false, error: json.error, message: json.message },
              name,
            )
            const wanted = expectCode(access, role, {
              enabled,
              linksEnabled,
              shareLinks,
              anyoneLinksOwnerOnly,
            })
            t.equal(json.error, wanted, name)
            if (wanted === 'policy_denied') t.equal(json.rule, 'anyoneLinksOwnerOnly')
            if (status === 201) await api('DELETE', `/port-shares/${json.share.id}`, undefined, options)
          }
        }
      }
  }

  type Facts = {
    enabled: boolean
    linksEnabled: boolean
    shareLinks: boolean
    anyoneLinksOwnerOnly: boolean
  }
  /** The table of spec §4.5 and §7.1; undefined: the link is created. */
  function expectCode(access: PortAudience, role: (typeof ROLES)[number], facts: Facts): string | undefined {
    if (access === 'members') return facts.enabled ? undefined : 'port_share_disabled'
    if (!facts.linksEnabled) return 'share_links_disabled'
    if (role === 'contractor') return 'not_allowed'
    if (access === 'public' && role !== 'owner') return 'not_allowed'
    if (!facts.shareLinks) return 'share_links_blocked'
    if (access === 'anyone' && facts.anyoneLinksOwnerOnly && role !== 'owner') return 'policy_denied'
    return undefined
  }
})
