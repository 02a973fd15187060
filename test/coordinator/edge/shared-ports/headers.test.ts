// Which headers a box and a viewer get of each other.
import t from 'tap'
import {
  createRequestHeaders,
  type ForwardedRequest,
} from '../../../../coordinator/edge/shared-ports/headers/request-headers.ts'
import {
  createResponseHeaders,
  type ForwardedResponse,
} from '../../../../coordinator/edge/shared-ports/headers/response-headers.ts'
import { filterSetCookie } from '../../../../coordinator/edge/shared-ports/headers/set-cookie.ts'
import { filterTrailers, removeHopByHop } from '../../../../coordinator/http/forward/hop-by-hop.ts'
import type { HeaderPair } from '../../../../coordinator/http/forward/raw-headers.ts'

const ORIGIN = 'https://fig-3000-abc.boxes.test'
const FORWARDED: HeaderPair[] = [
  ['X-Forwarded-For', '203.0.113.9'],
  ['X-Forwarded-Proto', 'https'],
  ['X-Forwarded-Host', 'fig-3000-abc.boxes.test'],
]

const toBox = (headers: HeaderPair[], options: Partial<ForwardedRequest> = {}) =>
  createRequestHeaders({
    headers,
    method: 'GET',
    isChunked: false,
    upgrade: undefined,
    cookie: undefined,
    origin: ORIGIN,
    port: 3000,
    rewritesHost: false,
    clientAddress: '203.0.113.9',
    ...options,
  })

const toViewer = (headers: HeaderPair[], options: Partial<ForwardedResponse> = {}) =>
  createResponseHeaders({
    headers,
    status: 200,
    isChunked: true,
    isPrivate: false,
    origin: ORIGIN,
    port: 3000,
    rewritesHost: false,
    ...options,
  })

t.test('the order, the letter case and duplicates of headers are kept', async (t) => {
  const headers: HeaderPair[] = [
    ['hOst', 'fig-3000-abc.boxes.test'],
    ['X-Two', '1'],
    ['x-two', '2'],
    ['Accept', '*/*'],
  ]
  t.same(toBox(headers), [...headers, ...FORWARDED])
  t.same(toViewer(headers), headers)
})

t.test('hop-by-hop headers and those that Connection lists are removed', async (t) => {
  const headers: HeaderPair[] = [
    ['Connection', 'keep-alive, X-Hop'],
    ['Keep-Alive', 'timeout=5'],
    ['Transfer-Encoding', 'chunked'],
    ['X-Hop', 'a'],
    ['X-End', 'b'],
  ]
  t.same(removeHopByHop(headers), [['X-End', 'b']])
})

t.test('Connection cannot remove a header that decides what the receiver does', async (t) => {
  const kept: HeaderPair[] = [
    ['Host', 'a'],
    ['Content-Length', '3'],
    ['Set-Cookie', 'a=b'],
    ['Authorization', 'Basic eA=='],
  ]
  const connection: HeaderPair = ['Connection', 'host, Content-Length, set-cookie, authorization']
  t.same(removeHopByHop([...kept, connection]), kept)
})

t.test('X-Forwarded headers of the client are replaced, and Forwarded and X-Real-IP removed', async (t) => {
  const sent: HeaderPair[] = [
    ['X-Forwarded-For', '10.0.0.1'],
    ['x-forwarded-host', 'evil.test'],
    ['X-Forwarded-Port', '1'],
    ['X_Forwarded_For', '10.0.0.1'],
    ['Forwarded', 'for=10.0.0.1'],
    ['X-Real-IP', '10.0.0.1'],
  ]
  t.same(toBox(sent), FORWARDED)
})

t.test('the box gets no credential of Boxwood, and those of the app', async (t) => {
  for (const token of ['dcp_a', 'dct_a', 'dcm_a'])
    t.same(toBox([['Authorization', `Bearer ${token}`]]), FORWARDED, token)
  const own: HeaderPair[] = [
    ['Authorization', 'Basic YTpi'],
    ['authorization', 'Bearer eyJ0'],
  ]
  t.same(toBox(own), [...own, ...FORWARDED])
})

t.test('the cookies that remain replace all Cookie headers', async (t) => {
  const sent: HeaderPair[] = [
    ['Cookie', 'boxwood_viewer=x; a=1'],
    ['Accept', '*/*'],
    ['cookie', 'b=2'],
  ]
  t.same(toBox(sent, { cookie: 'a=1; b=2' }), [['Cookie', 'a=1; b=2'], ['Accept', '*/*'], ...FORWARDED])
  t.same(toBox(sent), [['Accept', '*/*'], ...FORWARDED])
})

t.test('a request has one clear length', async (t) => {
  const last = (headers: HeaderPair[]) => headers.slice(FORWARDED.length)
  t.same(last(toBox([], { method: 'POST' })), [['Content-Length', '0']])
  t.same(last(toBox([['Transfer-Encoding', 'chunked']], { method: 'POST', isChunked: true })), [
    ['Transfer-Encoding', 'chunked'],
  ])
  t.same(toBox([['Content-Length', '3']], { method: 'POST' }), [['Content-Length', '3'], ...FORWARDED])
  t.same(last(toBox([], { method: 'DELETE' })), [])
})

t.test('an upgrade has Connection and Upgrade', async (t) => {
  const sent: HeaderPair[] = [
    ['Connection', 'keep-alive, Upgrade'],
    ['Upgrade', 'websocket'],
  ]
  t.same(toBox(sent, { upgrade: 'websocket' }), [
    ...FORWARDED,
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ])
})

t.test('an app that checks its host gets localhost as Host, Origin and Referer', async (t) => {
  const sent: HeaderPair[] = [
    ['Host', 'fig-3000-abc.boxes.test'],
    ['Origin', ORIGIN],
    ['Referer', `${ORIGIN}/a?b`],
  ]
  t.same(toBox(sent, { rewritesHost: true }), [
    ['Host', 'localhost:3000'],
    ['Origin', 'http://localhost:3000'],
    ['Referer', 'http://localhost:3000/a?b'],
    ...FORWARDED,
  ])
  t.same(toBox(sent), [...sent, ...FORWARDED])
  const foreign: HeaderPair[] = [
    ['Origin', 'https://evil.test'],
    ['Referer', `${ORIGIN}.evil.test/`],
  ]
  t.same(toBox(foreign, { rewritesHost: true }), [...foreign, ...FORWARDED])
  const location: HeaderPair[] = [['Location', 'http://localhost:3000/a']]
  t.same(toViewer(location, { rewritesHost: true }), [['Location', `${ORIGIN}/a`]])
  t.same(toViewer(location), location)
  const other: HeaderPair[] = [['Location', 'http://localhost:30001/a']]
  t.same(toViewer(other, { rewritesHost: true }), other)
})

t.test('cookies of the box are for the host of the link only, and have no name of Boxwood', async (t) => {
  t.equal(filterSetCookie('a=1; Domain=boxes.test; Path=/'), 'a=1; Path=/')
  t.equal(filterSetCookie('a=1;domain = .boxes.test;DOMAIN'), 'a=1')
  t.equal(filterSetCookie('a=domain=x; Secure'), 'a=domain=x; Secure')
  for (const hostile of [
    'boxwood_viewer=x',
    '__Host-boxwood_session=x; Path=/; Secure',
    ' __HOST-boxwood_link=x',
    '__Secure-boxwood_x=1',
    '=boxwood_viewer=x',
    ' = __Host-boxwood_viewer=x',
    'boxwood_viewer',
  ])
    t.equal(filterSetCookie(hostile), null, hostile)
  t.same(
    toViewer([
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'boxwood_link=1'],
      ['Set-Cookie', 'b=2; Domain=test'],
    ]),
    [
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
    ],
  )
})

t.test('the box cannot clear the cookies of the site', async (t) => {
  t.same(toViewer([['Clear-Site-Data', '"cookies"']]), [])
  t.same(toViewer([['Clear-Site-Data', '"cache", "cookies"']]), [['Clear-Site-Data', '"cache"']])
  t.same(toViewer([['Clear-Site-Data', '"*"']]), [
    ['Clear-Site-Data', '"cache", "storage", "executionContexts"'],
  ])
})

t.test('the box cannot direct browsers to another port', async (t) => {
  t.same(toViewer([['Alt-Svc', 'h3=":8443"; persist=1']]), [])
})

t.test('no shared cache stores a response for which a cookie was needed', async (t) => {
  const cache = (...values: string[]) =>
    toViewer(
      values.map((value): HeaderPair => ['cache-control', value]),
      { isPrivate: true },
    )
  t.same(cache(), [['Cache-Control', 'private']])
  t.same(cache('public, max-age=60, s-maxage=90'), [['cache-control', 'private, max-age=60']])
  t.same(cache('private'), [['cache-control', 'private']])
  t.same(cache('no-store'), [['cache-control', 'no-store']])
  t.same(cache('no-cache', 'PUBLIC'), [['cache-control', 'private, no-cache']])
  const others: HeaderPair[] = [
    ['CDN-Cache-Control', 'max-age=60'],
    ['Cloudflare-CDN-Cache-Control', 'max-age=60'],
    ['Surrogate-Control', 'max-age=60'],
  ]
  t.same(toViewer(others, { isPrivate: true }), [['Cache-Control', 'private']])
  t.same(toViewer(others), others)
})

t.test('trailers cannot have the headers that the proxy changes', async (t) => {
  const kept: HeaderPair[] = [['X-Checksum', 'abc']]
  const removed: HeaderPair[] = [
    ['Content-Length', '3'],
    ['Set-Cookie', 'a=1'],
    ['authorization', 'Bearer dcp_a'],
    ['X-Forwarded-For', '10.0.0.1'],
    ['Transfer-Encoding', 'chunked'],
  ]
  t.same(filterTrailers([...kept, ...removed]), kept)
})
