// The cookie of a session.
import { stringifySetCookie } from 'cookie'
import { SESSION_COOKIE } from '../../../shared/session-cookie.ts'
import { SESSION } from './lifetime.ts'

const ATTRIBUTES = { name: SESSION_COOKIE, httpOnly: true, secure: true, sameSite: 'lax', path: '/' } as const

/** The cookie lives as long as a session can. The coordinator ends an unused session earlier. */
export const formatSessionCookie = (token: string): string =>
  stringifySetCookie({ ...ATTRIBUTES, value: token, maxAge: SESSION.maxMs / 1000 })

export const EXPIRED_SESSION_COOKIE = stringifySetCookie({ ...ATTRIBUTES, value: '', maxAge: 0 })
