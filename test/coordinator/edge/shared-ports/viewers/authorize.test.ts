// Who may view a share, as a table of audiences, headers of browsers, cookies and secrets.
import { parseSetCookie } from 'cookie'
import t from 'tap'
import type { ViewerDecision, ViewerRequest } from '../../../../../coordinator/edge/shared-ports/types.ts'
import { createViewerAuthorizer } from '../../../../../coordinator/edge/shared-ports/viewers/authorize.ts'
import type { Actor } from '../../../../../coordinator/http/actor.ts'
import { hashSecret } from '../../../../../coordinator/http/hash-secret.ts'
import type { PortAudience, ServedShare } from '../../../../../coordinator/port-shares/types.ts'
import { createTestClock } from '../../../../support/workspace.ts'

const PUBLIC_URL = 'https://boxwood.example.com'
const clock = createTestClock()
const actor = { userId: 'usr_ada' } as Actor

const createShare = (access: PortAudience): ServedShare => ({
  ...{ id: 'shr_1', workspaceId: 'ws_1', boxId: 'box', port: 3000, slug: 'fig-3000-x7k2m9q4ab', access },
  secretHash: access === 'anyone' ? hashSecret('secret') : null,
  expiresAt: access === 'members' ? null : clock.now() + 60_500,
  rewritesHost: false,
})

function createAuthorizer(scheme = 'https') {
  const exchanged: unknown[] = []
  const origin = (slug: string) => `${scheme}://${slug}.boxes.example.com`
  const authorize = createViewerAuthorizer({
    ...{ base: { getOrigin: origin }, clock, publicUrl: PUBLIC_URL },
    viewers: {
      async exchange(_share, code, state) {
        exchanged.push([code, state])
        return code === 'code' ? { token: 'token', maxAgeSeconds: 600 } : undefined
      },
      find: async (_share, token) => (token === 'token' ? actor : undefined),
    },
  })
  return { authorize, exchanged, origin: origin('fig-3000-x7k2m9q4ab') }
}

const HOST = 'fig-3000-x7k2m9q4ab.boxes.example.com'
const fetchMetadata = (site: string, mode: string, dest: string) => ({
  'sec-fetch-site': site,
  'sec-fetch-mode': mode,
  'sec-fetch-dest': dest,
})

/**
 * The requests that browsers and other clients send. counts: a page of the share, or the user, has sent it. opens: it opens the
 * link in a window. shows: the response becomes a document. Default: opens.
 */
const SOURCES: Record<
  string,
  {
    headers: Record<string, string>
    method?: string
    isUpgrade?: boolean
    counts: boolean
    opens: boolean
    shows?: boolean
  }
> = {
  'the address bar': { headers: fetchMetadata('none', 'navigate', 'document'), counts: true, opens: true },
  'a link of the share': {
    headers: fetchMetadata('same-origin', 'navigate', 'document'),
    ...{ counts: true, opens: true },
  },
  'a link of another share': {
    headers: fetchMetadata('same-site', 'navigate', 'document'),
    ...{ counts: true, opens: true },
  },
  'a link of another site': {
    headers: fetchMetadata('cross-site', 'navigate', 'document'),
    ...{ counts: true, opens: true },
  },
  'a form of the share': {
    headers: { ...fetchMetadata('same-origin', 'navigate', 'document'), origin: `https://${HOST}` },
    ...{ method: 'POST', counts: true, opens: false, shows: true },
  },
  'a form of another share': {
    headers: {
      ...fetchMetadata('same-site', 'navigate', 'document'),
      origin: 'https://other.boxes.example.com',
    },
    ...{ method: 'POST', counts: false, opens: false, shows: true },
  },
  'a frame of the share': {
    headers: fetchMetadata('same-origin', 'navigate', 'iframe'),
    ...{ counts: true, opens: false, shows: true },
  },
  'a frame of another share': {
    headers: fetchMetadata('same-site', 'navigate', 'iframe'),
    ...{ counts: false, opens: false, shows: true },
  },
  'a frame of another site': {
    headers: fetchMetadata('cross-site', 'navigate', 'iframe'),
    ...{ counts: false, opens: false, shows: true },
  },
  'an object of another site': {
    headers: fetchMetadata('cross-site', 'navigate', 'object'),
    ...{ counts: false, opens: false, shows: true },
  },
  'an embed of the share': {
    headers: fetchMetadata('same-origin', 'navigate', 'embed'),
    ...{ counts: true, opens: false, shows: true },
  },
  'a script of the share': {
    headers: fetchMetadata('same-origin', 'cors', 'empty'),
    ...{ counts: true, opens: false },
  },
  'a script of another share': {
    headers: { ...fetchMetadata('same-site', 'cors', 'empty'), origin: 'https://other.boxes.example.com' },
    ...{ counts: false, opens: false },
  },
  'a script of another share without CORS': {
    headers: fetchMetadata('same-site', 'no-cors', 'script'),
    ...{ counts: false, opens: false },
  },
  'an image of another site': {
    headers: fetchMetadata('cross-site', 'no-cors', 'image'),
    ...{ counts: false, opens: false },
  },
  'a WebSocket of the share': {
    headers: { ...fetchMetadata('same-origin', 'websocket', 'empty'), origin: `https://${HOST}` },
    ...{ isUpgrade: true, counts: true, opens: false },
  },
  'a WebSocket of the share without fetch metadata': {
    headers: { origin: `https://${HOST}` },
    ...{ isUpgrade: true, counts: true, opens: false },
  },
  'a WebSocket of another share': {
    headers: { origin: 'https://other.boxes.example.com' },
    ...{ isUpgrade: true, counts: false, opens: false },
  },
  'a WebSocket of another share with fetch metadata': {
    headers: {
      ...fetchMetadata('same-site', 'websocket', 'empty'),
      origin: 'https://other.boxes.example.com',
    },
    ...{ isUpgrade: true, counts: false, opens: false },
  },
  'a WebSocket of a sandboxed frame': {
    headers: { origin: 'null' },
    ...{ isUpgrade: true, counts: false, opens: false },
  },
  // fetch() of Node sends only this header.
  'a program': { headers: { accept: '*/*', 'sec-fetch-mode': 'cors' }, counts: true, opens: false },
  'a WebSocket of a program': { headers: {}, isUpgrade: true, counts: true, opens: false },
  curl: { headers: { accept: '*/*' }, counts: true, opens: false },
  'curl with HEAD': { headers: { accept: '*/*' }, method: 'HEAD', counts: true, opens: false },
  'an old browser': { headers: { accept: 'text/html,*/*;q=0.8' }, counts: true, opens: true },
  'a form of the share in an old browser': {
    headers: { accept: 'text/html,*/*;q=0.8', origin: `https://${HOST}` },
    ...{ method: 'POST', counts: true, opens: false, shows: true },
  },
  'a script of another share in an old browser': {
    headers: { origin: 'https://other.boxes.example.com' },
    ...{ method: 'POST', counts: false, opens: false },
  },
  'a script of the share in an old browser': {
    headers: { origin: `https://${HOST}` },
    ...{ method: 'POST', counts: true, opens: false },
  },
}

const COOKIES = { no: undefined, wrong: 'wrong', valid: 'token' } as const
const SECRETS = { no: undefined, wrong: 'wrong', valid: 'secret' } as const

function describe(decision: ViewerDecision): string {
  if (decision.type === 'serve') return decision.actor === null ? 'serve' : 'serve the viewer'
  if (decision.type === 'refuse') return decision.reason
  return decision.location.startsWith(`${PUBLIC_URL}/share/sign-in?`) ? 'sign in' : 'redirect'
}

/** The rules of the issue, per audience. */
function expect(
  access: PortAudience,
  cookie: keyof typeof COOKIES,
  secret: keyof typeof SECRETS,
  { counts, opens, shows = opens }: { counts: boolean; opens: boolean; shows?: boolean },
): string {
  if (access === 'public') return 'serve'
  if (access === 'members') {
    if (cookie === 'valid' && counts) return 'serve the viewer'
    if (cookie !== 'no' && !counts) return 'cross-origin'
    return opens ? 'sign in' : 'sign-in'
  }
  if (secret === 'valid') return shows ? 'redirect' : 'serve'
  if (secret === 'wrong' || cookie !== 'valid') return 'secret'
  return counts ? 'serve' : 'cross-origin'
}

t.test('each audience, source, cookie and secret', async (t) => {
  const { authorize } = createAuthorizer()
  const seen = new Set<string>()
  for (const access of ['members', 'anyone', 'public'] as const)
    for (const [source, { headers, method = 'GET', isUpgrade = false, ...rights }] of Object.entries(SOURCES))
      for (const cookie of ['no', 'wrong', 'valid'] as const)
        for (const secret of ['no', 'wrong', 'valid'] as const) {
          const name = access === 'anyone' ? '__Host-boxwood_link' : '__Host-boxwood_viewer'
          const value = access === 'anyone' && cookie === 'valid' ? 'secret' : COOKIES[cookie]
          const parameter = SECRETS[secret]
          const request: ViewerRequest = {
            ...{ method, isUpgrade },
            url: parameter === undefined ? '/a?b' : `/a?b&boxwood_secret=${parameter}`,
            headers: {
              host: HOST,
              ...headers,
              cookie: value === undefined ? 'app=1' : `app=1; ${name}=${value}; app=2`,
            },
          }
          const decision = await authorize(createShare(access), request)
          const found = describe(decision)
          seen.add(`${access}: ${found}`)
          t.equal(
            found,
            expect(access, cookie, secret, rights),
            `${access}, ${source}, ${cookie} cookie, ${secret} secret`,
          )
          if (decision.type === 'serve') {
            t.equal(decision.url, '/a?b')
            t.equal(decision.cookie, value === undefined ? 'app=1' : 'app=1; app=2')
          }
        }
  t.same([...seen].sort(), [
    ...['anyone: cross-origin', 'anyone: redirect', 'anyone: secret', 'anyone: serve'],
    ...['members: cross-origin', 'members: serve the viewer', 'members: sign in', 'members: sign-in'],
    'public: serve',
  ])
})

const NAVIGATION = fetchMetadata('none', 'navigate', 'document')

function createRequest(url: string, headers: Record<string, string> = {}): ViewerRequest {
  return { method: 'GET', url, isUpgrade: false, headers: { host: HOST, ...NAVIGATION, ...headers } }
}

function requireRedirect(decision: ViewerDecision) {
  if (decision.type !== 'redirect') throw new Error(`not a redirect: ${JSON.stringify(decision)}`)
  return { ...decision, cookies: decision.setCookies.map((header) => parseSetCookie(header)) }
}

t.test('the secret of a link becomes a cookie until the link expires', async (t) => {
  for (const scheme of ['https', 'http']) {
    const { authorize } = createAuthorizer(scheme)
    const isSecure = scheme === 'https'
    const decision = await authorize(createShare('anyone'), createRequest('//a/b?boxwood_secret=secret&c=d'))
    const { status, location, cookies } = requireRedirect(decision)
    t.equal(status, 303)
    t.equal(location, '/.//a/b?c=d', 'not a URL with the host a')
    const name = isSecure ? '__Host-boxwood_link' : 'boxwood_link'
    t.match(cookies, [{ name, value: 'secret', maxAge: 60, httpOnly: true, sameSite: 'lax', path: '/' }])
    t.equal(cookies[0]?.secure, isSecure || undefined)
    t.equal(cookies[0]?.domain, undefined)
  }
})

t.test('a form with the secret is sent again without it', async (t) => {
  const { authorize } = createAuthorizer()
  const request = createRequest('/a?boxwood_secret=secret')
  for (const [method, status] of [
    ['GET', 303],
    ['POST', 307],
  ] as const)
    t.match(
      await authorize(createShare('anyone'), { ...request, method }),
      { status, location: '/a' },
      method,
    )
})

t.test('over https a cookie without the prefix does not count', async (t) => {
  const { authorize } = createAuthorizer()
  const byLink = createRequest('/', { cookie: 'boxwood_link=secret' })
  t.match(await authorize(createShare('anyone'), byLink), { type: 'refuse', reason: 'secret' })
  const byViewer = createRequest('/', { cookie: 'boxwood_viewer=token' })
  t.equal(describe(await authorize(createShare('members'), byViewer)), 'sign in')
})

t.test('a forwarded port is part of the origin of the share', async (t) => {
  const { authorize } = createAuthorizer('http')
  const at = (origin: string) => ({
    ...{ method: 'GET', url: '/', isUpgrade: true },
    headers: { host: `${HOST}:9000`, origin, cookie: 'boxwood_link=secret' },
  })
  t.equal(describe(await authorize(createShare('anyone'), at(`http://${HOST}:9000`))), 'serve')
  t.equal(describe(await authorize(createShare('anyone'), at(`http://${HOST}:9001`))), 'cross-origin')
})

/** Another window of the origin cannot read the code in the URL. */
const REFUSED = { type: 'redirect', status: 303, location: '/.boxwood/viewer' } as const

t.test('signing in', async (t) => {
  const share = createShare('members')
  const { authorize, exchanged } = createAuthorizer()
  const start = requireRedirect(await authorize(share, createRequest('//a?b=c&d=%26')))
  const stateCookie = start.cookies[0]?.value ?? ''
  const location = new URL(start.location)
  const state = location.searchParams.get('state') ?? ''
  const callback = (query: Record<string, string>) =>
    `/.boxwood/viewer?${new URLSearchParams({ code: 'code', state, path: '/a?b=c', ...query })}`
  const withState = { cookie: `app=1; __Host-boxwood_state=${stateCookie}` }

  await t.test('starts with a state that only this browser has', async (t) => {
    t.equal(start.status, 302)
    t.equal(location.origin + location.pathname, `${PUBLIC_URL}/share/sign-in`)
    t.equal(location.searchParams.get('slug'), share.slug)
    t.equal(location.searchParams.get('path'), '/.//a?b=c&d=%26')
    t.match(start.cookies, [{ name: '__Host-boxwood_state', maxAge: 3600, httpOnly: true }])
    t.equal(state, hashSecret(stateCookie), 'the URL does not have the value of the cookie')
    const other = requireRedirect(await authorize(share, createRequest('/')))
    t.not(other.cookies[0]?.value, stateCookie)
    const sameBrowser = requireRedirect(await authorize(share, createRequest('/', withState)))
    t.equal(sameBrowser.cookies[0]?.value, stateCookie, 'two tabs can sign in at the same time')
    const chosen = { cookie: '__Host-boxwood_state=chosen' }
    t.not(requireRedirect(await authorize(share, createRequest('/', chosen))).cookies[0]?.value, 'chosen')
  })

  await t.test('ends with a viewer session', async (t) => {
    exchanged.length = 0
    const end = requireRedirect(await authorize(share, createRequest(callback({}), withState)))
    t.match(end, { status: 303, location: '/a?b=c' })
    t.match(end.cookies, [
      { name: '__Host-boxwood_viewer', value: 'token', maxAge: 600, httpOnly: true, sameSite: 'lax' },
      { name: '__Host-boxwood_state', value: '', maxAge: 0 },
    ])
    t.same(exchanged, [['code', state]])
  })

  await t.test('continues only at a path of the share', async (t) => {
    for (const path of [
      ...['//evil.example', '/\\evil.example', 'https://evil.example', '\t//evil.example', 'a', ''],
      ...['/a\r\nset-cookie: b=c', '/\u00e4'],
    ]) {
      const end = requireRedirect(await authorize(share, createRequest(callback({ path }), withState)))
      t.equal(end.location, '/', encodeURIComponent(path))
    }
  })

  await t.test('needs the browser that has started it', async (t) => {
    exchanged.length = 0
    for (const headers of [
      {},
      { cookie: '__Host-boxwood_state=0' },
      { cookie: `__Host-boxwood_state=${state}` },
      { cookie: `boxwood_state=${stateCookie}` },
    ] as Record<string, string>[])
      t.match(await authorize(share, createRequest(callback({}), headers)), {
        ...REFUSED,
        setCookies: [/^__Host-boxwood_state=; Max-Age=0/],
      })
    for (const url of [callback({ state: '' }), '/.boxwood/viewer?code=code'])
      t.match(await authorize(share, createRequest(url, withState)), REFUSED)
    t.same(exchanged, [], 'the code stays valid')
    const page = await authorize(share, createRequest(REFUSED.location))
    t.match(page, { type: 'refuse', reason: 'sign-in' })
  })

  await t.test('a script, a frame or a preview does not use the code up', async (t) => {
    exchanged.length = 0
    const headers = { host: HOST, ...withState }
    for (const request of [
      { ...createRequest(callback({})), method: 'HEAD' },
      { ...createRequest(callback({})), method: 'POST' },
      { ...createRequest(callback({})), isUpgrade: true },
      createRequest(callback({}), { ...withState, ...fetchMetadata('same-origin', 'cors', 'empty') }),
      createRequest(callback({}), { ...withState, ...fetchMetadata('same-origin', 'navigate', 'iframe') }),
      { ...createRequest(callback({})), headers },
    ])
      t.match(await authorize(share, request), { type: 'refuse', reason: 'cross-origin' })
    t.same(exchanged, [])
  })

  await t.test('starts again at its own path, also with a session', async (t) => {
    const cookie = '__Host-boxwood_viewer=token'
    const again = requireRedirect(await authorize(share, createRequest('/.boxwood/sign-in', { cookie })))
    const { pathname, searchParams } = new URL(again.location)
    t.equal(pathname, '/share/sign-in')
    t.equal(searchParams.get('path'), '/')
    const frame = { cookie, ...fetchMetadata('same-origin', 'navigate', 'iframe') }
    for (const headers of [frame, { cookie, ...fetchMetadata('same-origin', 'cors', 'empty') }])
      t.match(await authorize(share, createRequest('/.boxwood/sign-in', headers)), { reason: 'cross-origin' })
  })

  await t.test('a used code continues with the session that it has started', async (t) => {
    const url = callback({ code: 'used' })
    t.match(await authorize(share, createRequest(url, withState)), REFUSED)
    const cookie = `${withState.cookie}; __Host-boxwood_viewer=token`
    const again = requireRedirect(await authorize(share, createRequest(url, { cookie })))
    t.match(again, { location: '/a?b=c', setCookies: [] })
  })

  await t.test('only a share for members has the path', async (t) => {
    exchanged.length = 0
    t.equal(describe(await authorize(createShare('public'), createRequest(callback({}), withState))), 'serve')
    t.equal(
      describe(await authorize(createShare('anyone'), createRequest(callback({}), withState))),
      'secret',
    )
    t.same(exchanged, [])
  })
})
