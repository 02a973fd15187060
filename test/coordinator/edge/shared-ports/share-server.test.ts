// Which requests reach a box, what others get, and when open requests are closed.
import { once } from 'node:events'
import { request as createRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { z } from 'zod'
import type { AuthorizeViewer, ViewerDecision } from '../../../../coordinator/edge/shared-ports/types.ts'
import { byKey } from '../../../../coordinator/http/access.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { route } from '../../../../coordinator/http/route.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { actor } from '../../http/test-server.ts'
import { HOST, openRaw, PUBLIC_URL, type Share, type ShareOptions, startShare } from './share-fixture.ts'

const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8'

function start({ host, port }: Share, options: RequestOptions = {}) {
  const request = createRequest({
    host,
    port,
    path: '/',
    ...options,
    headers: { host: HOST, ...options.headers },
  })
  request.on('error', () => undefined)
  request.end()
  return request
}

async function send(share: Share, options: RequestOptions = {}) {
  const [response] = (await once(start(share, options), 'response')) as [IncomingMessage]
  const body = await text(response)
  return { status: response.statusCode, headers: response.headers, body }
}

const sendHtml = (share: Share, options: RequestOptions = {}) =>
  send(share, { ...options, headers: { accept: HTML, ...options.headers } })

const decide =
  (decision: ViewerDecision): AuthorizeViewer =>
  async () =>
    decision

/** A viewer of a share for members. */
const asMember =
  (member: Actor = actor): AuthorizeViewer =>
  async (_share, { url }) => ({ type: 'serve', actor: member, url, cookie: undefined })

const asPublic: AuthorizeViewer = async (_share, { url }) => ({
  type: 'serve',
  actor: null,
  url,
  cookie: undefined,
})

const startOk = (t: Test, options: ShareOptions = {}) =>
  startShare(t, { app: (_request, response) => response.end('from the box'), ...options })

t.test('the host of a link never reaches the API, and other hosts no share', async (t) => {
  const control = [
    route({
      access: byKey('boxes', 'write'),
      method: 'GET',
      path: '/boxes',
      summary: 'a',
      responses: { 200: z.string() },
      handler: async () => 'from the API',
    }),
  ]
  const share = await startOk(t, { control })
  const authorization = 'Bearer dcp_owner'
  for (const path of ['/api/v1/boxes', '/healthz', '/agent/tunnel', '/sign-in'])
    t.equal((await send(share, { path, headers: { authorization } })).body, 'from the box', path)
  const fromApi = await send(share, { path: '/api/v1/boxes', headers: { host: 'api.test', authorization } })
  t.equal(fromApi.body, 'from the API')
  t.equal((await send(share, { path: '/x', headers: { host: 'api.test' } })).status, 404)
})

t.test('a request with several Host headers or another target than a path reaches nothing', async (t) => {
  const share = await startOk(t)
  for (const head of [
    `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: api.test`,
    `GET / HTTP/1.1\r\nHost: api.test\r\nHost: ${HOST}`,
    `GET http://api.test/ HTTP/1.1\r\nHost: ${HOST}`,
    `OPTIONS * HTTP/1.1\r\nHost: ${HOST}`,
  ]) {
    const raw = await openRaw(t, share, `${head}\r\nConnection: close\r\n\r\n`)
    await waitUntil('it has a response', () => raw.isClosed)
    t.match(raw.received, /^HTTP\/1\.1 400 /, head)
  }
})

t.test('requests of one connection are served by their own host', async (t) => {
  const share = await startOk(t)
  const raw = await openRaw(
    t,
    share,
    `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\nGET /healthz HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n`,
  )
  await waitUntil('both have a response', () => raw.isClosed)
  t.match(raw.received, /from the box.*HTTP\/1\.1 200 OK.*"ok":true/s)
})

t.test('an unknown link has a page, which clears what an earlier app has stored', async (t) => {
  const share = await startOk(t)
  const page = await sendHtml(share, { headers: { host: 'other.shares.test' } })
  t.equal(page.status, 404)
  t.match(page.body, '<h1>This link does not exist</h1>')
  t.match(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'clear-site-data': '"cache", "storage"',
    'content-security-policy': /^default-src 'none'; style-src 'sha256-/,
  })
  const json = await send(share, { headers: { host: 'other.shares.test' } })
  t.equal(json.headers['content-type'], 'application/json; charset=utf-8')
  t.match(JSON.parse(json.body), { error: 'not_found' })
  share.endShare()
  t.equal((await sendHtml(share)).body, page.body)
})

t.test('refused viewers and redirects', async (t) => {
  const refusals = { 'sign-in': 401, secret: 403, 'cross-origin': 403, 'not-found': 404 } as const
  for (const [reason, status] of Object.entries(refusals) as [keyof typeof refusals, number][]) {
    const decision = { type: 'refuse', reason, setCookies: ['a=1', 'b=2'] } as const
    const share = await startOk(t, { share: { access: 'members' }, authorize: decide(decision) })
    const { status: received, headers, body } = await send(share)
    t.equal(received, status, reason)
    t.same(headers['set-cookie'], ['a=1', 'b=2'])
    t.notMatch(body, 'from the box')
    t.same(share.opened, [])
  }
  const redirect = { type: 'redirect', status: 303, location: '/a', setCookies: ['c=3'] } as const
  const share = await startOk(t, { authorize: decide(redirect) })
  const { status, headers } = await send(share)
  t.equal(status, 303)
  t.match(headers, { location: '/a', 'set-cookie': ['c=3'], 'cache-control': 'no-store' })
})

t.test('the box gets the URL and the cookies of the decision', async (t) => {
  const share = await startShare(t, {
    app: ({ url, headers }, response) => response.end(`${url} ${headers.cookie}`),
    share: { access: 'anyone' },
    authorize: decide({ type: 'serve', actor: null, url: '/x?y=1', cookie: 'a=1' }),
  })
  const { body, headers } = await send(share, {
    path: '/x?boxwood_secret=s&y=1',
    headers: { cookie: 'boxwood_link=s; a=1' },
  })
  t.equal(body, '/x?y=1 a=1')
  t.equal(headers['cache-control'], 'private')
})

t.test('a port on which nothing listens has a page that reloads itself', async (t) => {
  const share = await startOk(t, {
    connect: async () => {
      throw new ApiError('not_found')
    },
  })
  const { status, body, headers } = await sendHtml(share)
  t.equal(status, 502)
  t.match(body, 'Nothing listens on port 3000 yet')
  t.match(body, '<meta http-equiv="refresh" content="2">')
  t.equal(headers['clear-site-data'], undefined)
  t.match(body, 'Start it. This page reloads itself.')
  t.match(JSON.parse((await send(share)).body), { error: 'box_unreachable', message: /Start it\.$/ })
  t.same(share.boxConnections.size, { ports: 0, connections: 0 })
})

t.test('a box that cannot be reached, and one that is starting', async (t) => {
  const unreachable = await startOk(t, {
    connect: async () => {
      throw new ApiError('box_unreachable')
    },
  })
  t.match(await sendHtml(unreachable), { status: 502, body: 'Box fig cannot be reached' })
  const starting = await startOk(t, { box: { observed_state: 'waking' } })
  t.match(await sendHtml(starting), { status: 503, body: /http-equiv="refresh".*Box fig is starting/s })
  const failed = await startOk(t, { box: { observed_state: 'provision_failed' } })
  t.match(await sendHtml(failed), { status: 502, body: 'could not be provisioned' })
})

const SUSPENDED = { desired_state: 'suspended', observed_state: 'suspended' } as const

t.test('the page of a suspended box leads a member to the main origin', async (t) => {
  const share = await startOk(t, { share: { access: 'members' }, box: SUSPENDED, authorize: asMember() })
  const readLink = (body: string) => /href="([^"]+)"/.exec(body)?.[1]?.replaceAll('&#38;', '&')
  const { status, body } = await sendHtml(share, { path: '/a?b="c"' })
  t.equal(status, 503)
  const toLink = (path: string) =>
    `${PUBLIC_URL}/share/wake?${new URLSearchParams({ slug: share.share.slug, path })}`
  t.equal(readLink(body), toLink('/a?b="c"'))
  t.notMatch(body, '<form')
  const posted = await sendHtml(share, { method: 'POST', path: '/a' })
  t.equal(readLink(posted.body), toLink('/'), 'a form is not sent again')
  t.equal(readLink((await sendHtml(share, { path: '//evil.test' })).body), toLink('/.//evil.test'))

  const visitor = await startOk(t, { box: SUSPENDED, authorize: asPublic })
  const page = await sendHtml(visitor)
  t.match(page.body, 'A member of its workspace can wake it.')
  t.equal(readLink(page.body), undefined)
})

t.test('a page of the box cannot wake it with the session of its viewer', async (t) => {
  const share = await startOk(t, { share: { access: 'members' }, box: SUSPENDED, authorize: asMember() })
  const origin = `http://${HOST}`
  for (const path of ['/.boxwood/wake', '/share/wake', `/share/wake?slug=${share.share.slug}&path=%2F`]) {
    const headers = { origin, 'sec-fetch-site': 'same-origin' }
    const { status } = await send(share, { method: 'POST', path, headers })
    t.equal(status, path.startsWith('/.boxwood/') ? 404 : 503, path)
  }
})

t.test('only the service worker of a public link can have the whole origin as its scope', async (t) => {
  const script = { 'service-worker': 'script', 'sec-fetch-dest': 'serviceworker' }
  const app: ShareOptions['app'] = (_request, response) =>
    response.setHeader('service-worker-allowed', '/').end('from the box')
  for (const access of ['members', 'anyone', 'public'] as const) {
    const authorize = access === 'members' ? asMember() : asPublic
    const share = await startOk(t, { app, share: { access }, authorize })
    const isPublic = access === 'public'
    for (const path of ['/worker.js', '/worker.js?v=1', '/worker.js?/a/'])
      t.equal(
        (await send(share, { path, headers: script })).status,
        isPublic ? 200 : 403,
        `${access}: ${path}`,
      )
    for (const headers of [{}, script]) {
      const path = Object.keys(headers).length === 0 ? '/worker.js' : '/app/worker.js'
      const response = await send(share, { path, headers })
      t.equal(response.status, 200)
      t.equal(response.headers['service-worker-allowed'], isPublic ? '/' : undefined, access)
    }
  }
})

t.test('the paths of Boxwood do not reach the box', async (t) => {
  const share = await startOk(t, { share: { access: 'members' }, authorize: asMember() })
  t.equal((await send(share, { path: '/.boxwood/other' })).status, 404)
  t.equal((await send(share, { path: '/.boxwood' })).body, 'from the box')
})

t.test('openings are navigations, and requests of clients that are no browsers', async (t) => {
  const share = await startOk(t)
  const navigate = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  await send(share, { headers: navigate })
  t.same(share.opened, ['shr_1'])
  await send(share, { headers: { ...navigate, 'sec-fetch-dest': 'iframe' } })
  await send(share, { headers: { 'sec-fetch-mode': 'cors' } })
  t.same(share.opened, ['shr_1'])
  await send(share)
  t.same(share.opened, ['shr_1', 'shr_1'])
})

/** Opens a response that does not end. */
async function openResponse(share: Share, options: RequestOptions = {}) {
  const [response] = (await once(start(share, options), 'response')) as [IncomingMessage]
  response.on('error', () => undefined).resume()
  return response
}

const endless: ShareOptions['app'] = (_request, response) => response.writeHead(200).flushHeaders()

t.test('an open response is closed when its share ends', async (t) => {
  const share = await startShare(t, { app: endless })
  const response = await openResponse(share)
  share.endShare()
  await waitUntil('it is closed', () => response.closed)
  t.notOk(response.complete)
  await waitUntil('the box sees it', () => share.appSockets.size === 0)
})

t.test('after a gap, the open responses of shares that have ended meanwhile are closed', async (t) => {
  const share = await startShare(t, { app: endless })
  const response = await openResponse(share)
  share.reportGap()
  t.equal((await send(share, { headers: { host: 'other.shares.test' } })).status, 404)
  t.notOk(response.closed)
  share.endShareUnnoticed()
  share.reportGap()
  await waitUntil('it is closed', () => response.closed)
})

t.test('an open response is closed when its share expires', async (t) => {
  let now = 1_000
  const share = await startShare(t, { app: endless, share: { expiresAt: 1_001 }, clock: { now: () => now } })
  const response = await openResponse(share)
  t.notOk(response.closed)
  now = 1_001
  await waitUntil('it is closed', () => response.closed)
})

t.test('a share that ends while it is read is not served', async (t) => {
  const share = await startOk(t)
  const started = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  share.beforeFind = async () => {
    started.resolve()
    await ended.promise
  }
  const result = send(share)
  await started.promise
  share.beforeFind = undefined
  share.endShare()
  ended.resolve()
  t.equal((await result).status, 404)
})

t.test('the open response of a member is closed when the member may not see it any more', async (t) => {
  let allowed = true
  const share = await startShare(t, {
    app: endless,
    share: { access: 'members' },
    authorize: async (found, request) =>
      allowed ? asMember()(found, request) : { type: 'refuse', reason: 'sign-in' },
  })
  const change = { workspaceId: 'ws_1', credentialId: 'key_1' }
  const response = await openResponse(share)
  share.server.openRequests.onAccessChange(change)
  t.equal((await send(share, { headers: { host: 'other.shares.test' } })).status, 404)
  t.notOk(response.closed)
  allowed = false
  share.server.openRequests.onAccessChange(change)
  await waitUntil('it is closed', () => response.closed)
})

t.test('connections of viewers with a credential are not limited as those of strangers', async (t) => {
  const share = await startOk(t, { share: { access: 'members' }, authorize: asMember() })
  const calls: string[] = []
  const { connections } = share.server
  const { setAuthenticated } = connections
  connections.setAuthenticated = (socket, subject) => {
    calls.push('authenticated')
    setAuthenticated.call(connections, socket, subject)
  }
  await send(share)
  t.same(calls, ['authenticated'])
  await send(share, { headers: { host: 'other.shares.test' } })
  t.same(calls, ['authenticated'])
})

t.test('a browser whose cookies the app would refuse gets a page that deletes them', async (t) => {
  const share = await startOk(t)
  const cookie = (bytes: number) => `bomb=${'x'.repeat(bytes)}`
  const page = await sendHtml(share, { headers: { cookie: cookie(20_000) } })
  t.equal(page.status, 431)
  t.match(page.body, /<script type="module">[\s\S]* document\.cookie = /)
  t.equal((await sendHtml(share, { headers: { cookie: cookie(10_000) } })).body, 'from the box')
  const ofScript = await send(share, { headers: { cookie: cookie(20_000) } })
  t.notMatch(ofScript.body, 'script', 'other requests get the response of the app')
})

t.test('connections of strangers are limited, also of those with the secret of a link', async (t) => {
  const share = await startOk(t, { share: { access: 'anyone' }, authorize: asPublic })
  share.server.connections.setAuthenticated = () => t.fail('the connection is not limited')
  t.equal((await send(share)).status, 200)
})

t.test('requests while the coordinator stops', async (t) => {
  const share = await startOk(t)
  share.beginStop()
  const { status, headers } = await send(share)
  t.equal(status, 503)
  t.equal(headers.connection, 'close')
})
