// GET /share/open on the main origin: the URL of POST /port-shares/{id}/open. The browser keeps the code as a cookie of the main
// origin, starts a sign-in at the share, and returns to /share/sign-in with its state.
import type { IncomingHttpHeaders } from 'node:http'
import type { PublicRoute } from '../../../http/public-routes.ts'
import type { ShareViewers } from '../../../port-shares/types.ts'
import { OPEN_PATH } from '../../../port-shares/viewers/open-url.ts'
import { START_PATH } from './callback-url.ts'
import { formatExpiredCookie, formatShareCookie, readShareCookie } from './cookies.ts'
import {
  assertNavigation,
  MAIN_ORIGIN_HEADERS,
  type MainOriginOptions,
  sendNoSuchLink,
} from './main-origin.ts'
import { isSlug } from './slug.ts'

export type ShareOpenOptions = MainOriginOptions & {
  shareViewers: Pick<ShareViewers, 'isOpenCode'>
}

/** The time for two redirects. */
const COOKIE_SECONDS = 60

const isSecureUrl = (publicUrl: string): boolean => publicUrl.startsWith('https:')

/** Returns the code of a browser that is opening the share; undefined: it opens another share, or none. */
export function readOpenCode(
  { cookie }: IncomingHttpHeaders,
  slug: string,
  publicUrl: string,
): string | undefined {
  const prefix = `${slug}.`
  const values = readShareCookie(cookie, 'open', isSecureUrl(publicUrl))
  return values.find((value) => value.startsWith(prefix))?.slice(prefix.length)
}

/** The value of the Set-Cookie header that removes the code. */
export const formatExpiredOpenCode = (publicUrl: string): string =>
  formatExpiredCookie('open', isSecureUrl(publicUrl))

export function createShareOpenRoute(options: ShareOpenOptions): PublicRoute {
  const { portShares, shareViewers, publicUrl } = options
  return {
    path: OPEN_PATH,
    async handler(request, reply) {
      reply.headers(MAIN_ORIGIN_HEADERS)
      assertNavigation(request)
      const query = new URLSearchParams(request.url.split('?')[1] ?? '')
      const [slug, code] = [query.get('slug') ?? '', query.get('code') ?? '']
      const found = isSlug(slug) ? await portShares.find(slug) : undefined
      if (found?.share.access !== 'members') return sendNoSuchLink(request, reply)
      const origin = portShares.base.getOrigin(slug)
      // The URL was opened twice: the browser may have a viewer session.
      if (!(await shareViewers.isOpenCode(found.share, code))) return reply.redirect(`${origin}/`, 303)
      const cookie = formatShareCookie('open', `${slug}.${code}`, {
        isSecure: isSecureUrl(publicUrl),
        maxAgeSeconds: COOKIE_SECONDS,
      })
      return reply.header('set-cookie', cookie).redirect(origin + START_PATH, 303)
    },
  }
}
