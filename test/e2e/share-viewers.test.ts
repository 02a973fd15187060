// Viewers of shared ports over HTTP: the sign-in at the main origin, links that open without a sign-in, and what their codes and
// cookies are not accepted for.
import { request as sendRequest } from 'node:http'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import t from 'tap'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createUserKey } from '../support/limited-key.ts'
import { skipOnReplicas } from '../support/on-replicas.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const NAVIGATION = {
  accept: 'text/html',
  'sec-fetch-site': 'cross-site',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}
const STATE = 'a'.repeat(64)

t.test('viewers of shared ports', async (t) => {
  const lines: string[] = []
  const log = pino(
    { level: 'trace' },
    new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    }),
  )
  const coordinator = await startTestCoordinator(t, { log })
  const { api, edge, url, key } = coordinator
  const { portShares, shareViewers } = coordinator.instance.context
  /** What must not be in the log. */
  const secrets: string[] = []
  const { box } = (await api('POST', '/boxes', { name: 'fig' })).json
  const share = async (port: number, access: string) =>
    (await api('POST', `/boxes/${box.id}/port-shares`, { port, access })).json.share
  const [members, anyone] = [await share(3000, 'members'), await share(3001, 'anyone')]
  const served = (await portShares.find(members.slug))?.share
  if (served === undefined) throw new Error('the link is not served')
  secrets.push(new URL(anyone.url).searchParams.get('boxwood_secret') ?? '')

  /** Not with fetch(), which sets headers of browsers itself. */
  function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number
      headers: Record<string, string | undefined>
      text: string
    }>()
    const request = sendRequest(
      url + path,
      { method, headers: { ...NAVIGATION, ...headers } },
      async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        const found = response.headers as Record<string, string | undefined>
        resolve({ status: response.statusCode ?? 0, headers: found, text })
      },
    )
    request.on('error', reject).end()
    return promise
  }

  const toPath = (query: Record<string, string> = {}) =>
    `/share/sign-in?${new URLSearchParams({ slug: members.slug, path: '/a?b=c', state: STATE, ...query })}`

  await t.test('POST /port-shares/{id}/open', async (t) => {
    const { status, json } = await api('POST', `/port-shares/${members.id}/open`)
    t.equal(status, 200)
    const opened = new URL(json.url)
    t.equal(opened.origin, url)
    t.equal(opened.pathname, '/share/open')
    const remainingMs = Date.parse(json.expiresAt) - Date.now()
    t.ok(remainingMs > 9 * 60_000 && remainingMs <= 10 * 60_000, `${remainingMs} ms`)
    const code = opened.searchParams.get('code') ?? ''
    t.same([...opened.searchParams.keys()], ['slug', 'code'])
    t.equal(opened.searchParams.get('slug'), members.slug)
    secrets.push(code)
    const path = opened.pathname + opened.search
    for (const headers of [
      { 'sec-fetch-dest': 'iframe' },
      { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    ])
      t.match(await get(path, headers), { status: 403, headers: { 'set-cookie': undefined } })
    const start = await get(path)
    t.match(start, { status: 303, headers: { location: `${members.origin}/.boxwood/sign-in` } })
    t.match(start.headers, { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    const [setCookie = ''] = [start.headers['set-cookie']].flat()
    t.match(setCookie, /^boxwood_open=[^;]+; Max-Age=60; Path=\/; HttpOnly; SameSite=Lax$/)
    const cookie = setCookie.split(';', 1)[0] ?? ''
    t.match(await get(toPath({ slug: anyone.slug }), { cookie }), { status: 302 }, 'for one link only')
    const end = await get(toPath(), { cookie })
    t.equal(end.status, 303)
    t.match([end.headers['set-cookie']].flat()[0], /^boxwood_open=; Max-Age=0;/)
    const callback = new URL(end.headers.location ?? '')
    t.equal(callback.origin + callback.pathname, `${members.origin}/.boxwood/viewer`)
    t.equal(callback.searchParams.get('state'), STATE)
    const viewerCode = callback.searchParams.get('code') ?? ''
    t.not(viewerCode, code)
    const session = await shareViewers.exchange(served, viewerCode, STATE)
    secrets.push(viewerCode, session?.token ?? '')
    t.match(await shareViewers.find(served, session?.token ?? ''), {
      userId: coordinator.instance.owner?.userId,
    })
    t.match(await get(toPath(), { cookie }), { status: 302 }, 'it opens once')
    const again = await get(path)
    t.match(again, { status: 303, headers: { location: `${members.origin}/`, 'set-cookie': undefined } })
    const otherLink = `/share/open?${new URLSearchParams({ slug: anyone.slug, code })}`
    for (const unknown of [otherLink, '/share/open', '/share/open?slug=fig-3000-2222222222&code=x'])
      t.match(await get(unknown), { status: 404, text: 'This link does not exist' }, unknown)
    const { events } = (await api('GET', '/audit?kind=port_share.open')).json
    t.match(events, [{ boxId: box.id, detail: { shareId: members.id, port: 3000, access: 'members' } }])
    t.equal(events.length, 1)

    t.match(await api('POST', `/port-shares/${anyone.id}/open`), {
      status: 400,
      json: { error: 'bad_request' },
    })
    for (const id of ['shr_0123456789abcdef01234567', 'a'])
      t.match(await api('POST', `/port-shares/${id}/open`), { status: 404, json: { error: 'not_found' } })
    const contractor = await createUserKey(coordinator, 'contractor')
    t.match(await api('POST', `/port-shares/${members.id}/open`, undefined, { key: contractor }), {
      ...{ status: 404, json: { error: 'not_found' } },
    })
  })

  await t.test('a user with a session gets a code', async (t) => {
    const session = await createTestSession(coordinator, 'member')
    const response = await get(toPath(), session.headers)
    t.equal(response.status, 303)
    const location = new URL(response.headers.location ?? '')
    t.equal(location.origin + location.pathname, `${members.origin}/.boxwood/viewer`)
    t.equal(location.searchParams.get('state'), STATE)
    t.equal(location.searchParams.get('path'), '/a?b=c')
    const code = location.searchParams.get('code') ?? ''
    secrets.push(code)
    t.equal(await shareViewers.exchange(served, code, ''), undefined, 'not without the state')
    const viewer = await shareViewers.exchange(served, code, STATE)
    secrets.push(viewer?.token ?? '')
    t.match(await shareViewers.find(served, viewer?.token ?? ''), { userId: session.userId })
    t.match(response.headers, {
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': /frame-ancestors 'none'/,
    })
    t.equal(response.headers['set-cookie'], undefined)

    await api('DELETE', '/session', undefined, session)
    t.equal(
      await shareViewers.find(served, viewer?.token ?? ''),
      undefined,
      'the sign-out ends the viewer session',
    )
  })

  await t.test('without a session, the user signs in first', async (t) => {
    for (const headers of [{}, { cookie: `${SESSION_COOKIE}=ended` }] as Record<string, string>[]) {
      const response = await get(toPath(), headers)
      t.equal(response.status, 302)
      t.match(response.headers, { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
      const location = new URL(response.headers.location ?? '', url)
      t.equal(location.origin + location.pathname, `${url}/sign-in`)
      t.equal(location.searchParams.get('next'), toPath())
    }
    const byKey = await get(toPath(), { authorization: `Bearer ${key}` })
    t.equal(byKey.status, 302, 'a key does not sign in')
  })

  await t.test('links that the user does not see are like unknown ones', async (t) => {
    const session = await createTestSession(coordinator)
    const unknown = await get(toPath({ slug: 'fig-3000-2222222222' }), session.headers)
    t.equal(unknown.status, 404)
    t.match(unknown.text, 'This link does not exist')
    t.equal(unknown.headers['clear-site-data'], undefined, 'the main origin keeps what it has stored')
    t.match(unknown.headers, {
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': /frame-ancestors 'none'/,
    })
    const contractor = await createTestSession(coordinator, 'contractor')
    for (const [name, path, { headers }] of [
      ['a contractor', toPath(), contractor],
      ['a link with a secret', toPath({ slug: anyone.slug }), session],
      ['no link', '/share/sign-in', session],
      ['no state', toPath({ state: '' }), session],
      ['another state', toPath({ state: 'x'.repeat(64) }), session],
      ['another origin', toPath({ path: '//evil.example' }), session],
      ['another scheme', toPath({ path: 'javascript:alert(1)' }), session],
      ['a backslash', toPath({ path: '/\\evil.example' }), session],
      ['a line break', toPath({ path: '/\r\nset-cookie: a=b' }), session],
      ['a host', toPath({ slug: 'evil.example/' }), session],
    ] as const) {
      const response = await get(path, headers)
      t.equal(response.status, 404, name)
      t.equal(response.text, unknown.text, name)
      t.equal(response.headers.location, undefined, name)
    }
  })

  await t.test('only a navigation gets a code', async (t) => {
    const { headers: cookie } = await createTestSession(coordinator)
    for (const [name, headers, method] of [
      ['a frame', { 'sec-fetch-dest': 'iframe' }, 'GET'],
      ['a script', { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }, 'GET'],
      ['an image', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, 'GET'],
      ['HEAD', {}, 'HEAD'],
    ] as const) {
      const response = await get(toPath(), { ...cookie, ...headers }, method)
      t.equal(response.status, 403, name)
      t.equal(response.headers.location, undefined, name)
      t.match(response.headers, { 'cache-control': 'no-store' })
    }
  })

  await t.test('a user gets a limited number of codes', { skip: skipOnReplicas() }, async (t) => {
    const { headers } = await createTestSession(coordinator, 'member')
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async () => (await get(toPath(), headers)).status),
    )
    t.ok(statuses.includes(303))
    t.ok(statuses.includes(429))
    const other = await createTestSession(coordinator, 'member')
    t.equal((await get(toPath(), other.headers)).status, 303)
  })

  await t.test(
    'spec §5.10: codes, viewer cookies and secrets of links are accepted nowhere else',
    async (t) => {
      const owner = coordinator.instance.owner
      if (!owner) throw new Error('the coordinator has no owner')
      const { code } = await shareViewers.createCode(owner, served, STATE)
      const { code: openCode } = await shareViewers.createOpenCode(owner, served)
      const used = await shareViewers.createCode(owner, served, STATE)
      const token = (await shareViewers.exchange(served, used.code, STATE))?.token ?? ''
      const secret = new URL(anyone.url).searchParams.get('boxwood_secret') ?? ''
      secrets.push(code, openCode, used.code, token)
      for (const [name, value] of Object.entries({ code, openCode, token, secret })) {
        t.ok(value)
        const attempts: [string, string, Record<string, string>][] = [
          ['the session cookie', '', { cookie: `${SESSION_COOKIE}=${value}` }],
          ['the cookies of links', '', createShareCookies(value)],
          ['a bearer', '', { authorization: `Bearer ${value}` }],
          ['a key', '', { authorization: `Bearer dcp_${value}` }],
          ['a ticket', '', { authorization: `Bearer dct_${value}` }],
          ['parameters', `?code=${value}&boxwood_secret=${value}&token=${value}&key=${value}`, {}],
        ]
        for (const [how, query, headers] of attempts) {
          const options = { key: null, headers }
          t.equal(
            (await api('GET', `/me${query}`, undefined, options)).status,
            401,
            `${name} as ${how}: the API`,
          )
          t.equal((await api('GET', `/boxes/${box.id}${query}`, undefined, options)).status, 401)
          t.equal((await api('POST', `/boxes/${box.id}/wake${query}`, undefined, options)).status, 401)
          t.equal(
            (await edge('fig', 'GET', `/exec${query}`, undefined, options)).status,
            401,
            `${name} as ${how}: the edge`,
          )
        }
        const signedIn = await get(toPath(), { cookie: `${SESSION_COOKIE}=${value}` })
        t.equal(signedIn.status, 302, `${name} is no session for other links`)
      }
      t.ok(await shareViewers.exchange(served, code, STATE), 'the attempts did not use the code up')
    },
  )

  await t.test('revoking a link deletes its codes and viewer sessions', async (t) => {
    const { db, background } = coordinator.instance.context
    const countViewers = async () => (await db.selectFrom('share_viewers').select('id').execute()).length
    t.ok((await countViewers()) > 0)
    t.equal((await api('DELETE', `/port-shares/${members.id}`)).status, 200)
    await background.close()
    await waitUntil('the viewer sessions are deleted', async () => (await countViewers()) === 0)
    t.equal((await api('POST', `/port-shares/${members.id}/open`)).status, 404)
    const session = await createTestSession(coordinator)
    t.equal((await get(toPath(), session.headers)).status, 404)
  })

  await t.test('no code, token or secret is in the log', async (t) => {
    const text = lines.join('')
    t.ok(text.length > 0)
    for (const secret of secrets) {
      t.ok(secret.length >= 30)
      t.notOk(text.includes(secret))
    }
    t.notOk(text.includes(STATE))
  })
})

const createShareCookies = (value: string) => ({
  cookie: ['viewer', 'link', 'state', 'open']
    .flatMap((name) => [`boxwood_${name}=${value}`, `__Host-boxwood_${name}=${value}`])
    .join('; '),
})
