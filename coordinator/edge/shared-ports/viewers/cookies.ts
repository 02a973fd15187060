// The cookies of Boxwood for viewers of shares. The app on the box never gets them, and its own cookies are not changed.
import { stringifySetCookie } from 'cookie'

/**
 * On the origin of a share: viewer, a viewer session of a share for members; link, the secret of an anyone link; state, a
 * sign-in in progress. On the main origin: open, the code of a URL that opens a share without a dashboard session.
 */
export type ShareCookie = 'viewer' | 'link' | 'state' | 'open'

/**
 * Browsers accept the prefix `__Host-` only with Secure, so it cannot be used over http. With it, no other share can set the
 * cookie.
 */
const getName = (cookie: ShareCookie, isSecure: boolean): string =>
  `${isSecure ? '__Host-' : ''}boxwood_${cookie}`

/** @param maxAgeSeconds null: until the browser is closed */
export const formatShareCookie = (
  cookie: ShareCookie,
  value: string,
  { isSecure, maxAgeSeconds }: { isSecure: boolean; maxAgeSeconds: number | null },
): string =>
  stringifySetCookie({
    name: getName(cookie, isSecure),
    value,
    httpOnly: true,
    secure: isSecure,
    sameSite: 'lax',
    path: '/',
    ...(maxAgeSeconds !== null && { maxAge: maxAgeSeconds }),
  })

export const formatExpiredCookie = (cookie: ShareCookie, isSecure: boolean): string =>
  formatShareCookie(cookie, '', { isSecure, maxAgeSeconds: 0 })

/** Bounds the lookups of one request. */
const MAX_VALUES = 3

/** The values of a cookie. On http, another share can add further ones, with Domain or Path. */
export function readShareCookie(
  header: string | undefined,
  cookie: ShareCookie,
  isSecure: boolean,
): readonly string[] {
  const name = getName(cookie, isSecure)
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  return [...new Set(values)].slice(0, MAX_VALUES)
}

/** The names of all cookies of Boxwood, in any case: some servers compare names of cookies without it. */
const OWN_COOKIE = /^\s*(?:__Host-)?boxwood_/i

/** Removes the cookies of Boxwood from a Cookie header. Returns undefined when no cookie is left. */
export function removeOwnCookies(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const pairs = header.split(';')
  const kept = pairs.filter((pair) => !OWN_COOKIE.test(pair))
  if (kept.length === pairs.length) return header
  const text = kept.join(';').trimStart()
  return text === '' ? undefined : text
}
