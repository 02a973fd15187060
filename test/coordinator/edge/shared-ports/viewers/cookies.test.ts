// The cookies of a share: those of Boxwood never reach the box, and those of the app do not change.
import { parseSetCookie } from 'cookie'
import t from 'tap'
import {
  formatExpiredCookie,
  formatShareCookie,
  readShareCookie,
  removeOwnCookies,
} from '../../../../../coordinator/edge/shared-ports/viewers/cookies.ts'

t.test('the cookies of the app stay as they are, byte for byte', async (t) => {
  for (const header of [
    'a=1',
    'a=1; b=2; a=3',
    'a=1;b=2',
    'a="x y"; b=%zz; c=\xe4; =d; e; ; f=a=b==',
    ' a=1 ;  b=2 ',
    'boxwood=1; myboxwood_viewer=2; __Secure-boxwood_viewer=3',
    '',
  ])
    t.equal(removeOwnCookies(header), header, JSON.stringify(header))
  t.equal(removeOwnCookies(undefined), undefined)
})

t.test('every cookie of Boxwood is removed', async (t) => {
  for (const [header, expected] of [
    ['boxwood_viewer=1', undefined],
    ['boxwood_viewer=1; __Host-boxwood_link=2; __Host-boxwood_session=3;boxwood_state=4', undefined],
    ['a=1; boxwood_viewer=1; b=2', 'a=1; b=2'],
    ['boxwood_viewer=1; a=1;  a=2', 'a=1;  a=2'],
    ['a=1; boxwood_viewer=1', 'a=1'],
    ['a=1;\tboxwood_viewer = 1; __HOST-Boxwood_link=2', 'a=1'],
    ['boxwood_viewer', undefined],
    ['boxwood_any=1; a', 'a'],
  ] as const)
    t.equal(removeOwnCookies(header), expected, header)
})

t.test('a cookie is for the origin of the share only', async (t) => {
  t.match(parseSetCookie(formatShareCookie('viewer', 'x', { isSecure: true, maxAgeSeconds: 60 })), {
    ...{ name: '__Host-boxwood_viewer', value: 'x', path: '/', maxAge: 60 },
    ...{ secure: true, httpOnly: true, sameSite: 'lax', domain: undefined },
  })
  t.match(parseSetCookie(formatShareCookie('link', 'x', { isSecure: false, maxAgeSeconds: null })), {
    ...{ name: 'boxwood_link', path: '/', maxAge: undefined, httpOnly: true, sameSite: 'lax' },
    ...{ secure: undefined, domain: undefined },
  })
  t.match(parseSetCookie(formatExpiredCookie('state', true)), { name: '__Host-boxwood_state', maxAge: 0 })
})

t.test('the values of a cookie are read by its exact name', async (t) => {
  const header =
    'a=1; boxwood_viewer=http; __Host-boxwood_viewer=https; boxwood_viewer=http; boxwood_viewer=b'
  t.same(readShareCookie(header, 'viewer', false), ['http', 'b'])
  t.same(readShareCookie(header, 'viewer', true), ['https'], 'another share can set the name of http')
  t.same(readShareCookie(header, 'link', false), [])
  t.same(readShareCookie(undefined, 'link', false), [])
  const many = Array.from({ length: 50 }, (_, n) => `boxwood_viewer=${n}`).join('; ')
  t.equal(readShareCookie(many, 'viewer', false).length, 3, 'each value is looked up')
})
