// The session cookie of a response, for tests that send it like a browser.
import { parseSetCookie } from 'cookie'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import type { ApiResponse, RequestOptions } from './coordinator.ts'

/** The attributes of the only Set-Cookie header. */
export function readSetCookie({ headers }: Pick<ApiResponse, 'headers'>) {
  const [header, ...others] = headers.getSetCookie()
  if (header === undefined || others.length > 0) throw new Error('the response does not set one cookie')
  return parseSetCookie(header)
}

/** The options that send a request by the session that the response has started. */
export function bySessionOf(response: Pick<ApiResponse, 'headers'>): Required<RequestOptions> {
  const { name, value } = readSetCookie(response)
  if (name !== SESSION_COOKIE || !value) throw new Error('the response does not set the session cookie')
  return { key: null, headers: { cookie: `${name}=${value}` } }
}
