// Decides who may view a share: the audience `members` needs a viewer session, `anyone` the secret of the link, `public` nothing.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../../shared/clock.ts'
import type { Actor } from '../../../http/actor.ts'
import { hashSecret } from '../../../http/hash-secret.ts'
import type { ServedShare, ShareBase, ShareViewers } from '../../../port-shares/types.ts'
import type { AuthorizeViewer, ViewerDecision, ViewerRequest } from '../types.ts'
import { CALLBACK_PATH, START_PATH } from './callback-url.ts'
import { formatExpiredCookie, formatShareCookie, readShareCookie, removeOwnCookies } from './cookies.ts'
import { isLocalPath, toLocalPath } from './local-path.ts'
import { createsDocument, isFromShare, isNavigation } from './request-source.ts'
import { takeSecret } from './secret-parameter.ts'
import { createSignInPath, toState } from './sign-in-url.ts'

export type ViewerAuthorizerOptions = {
  base: Pick<ShareBase, 'getOrigin'>
  viewers: Pick<ShareViewers, 'exchange' | 'find'>
  clock: Clock
  /** The URL of the coordinator, whose origin has the dashboard sessions, without a slash at its end. */
  publicUrl: string
}

/** The time for a sign-in: the browser may wait for the code of an email. */
const STATE_SECONDS = 60 * 60
const STATE_COOKIE = /^[0-9a-f]{48}$/

/** A request with what all decisions about it need. */
type Viewing = {
  share: ServedShare
  request: ViewerRequest
  origin: string
  isSecure: boolean
  secrets: readonly string[]
  /** The URL of the request without the secret. */
  url: string
}

export function createViewerAuthorizer({
  base,
  viewers,
  clock,
  publicUrl,
}: ViewerAuthorizerOptions): AuthorizeViewer {
  async function findViewer({ share, request, isSecure }: Viewing): Promise<Actor | undefined> {
    for (const token of readShareCookie(request.headers.cookie, 'viewer', isSecure)) {
      const actor = await viewers.find(share, token)
      if (actor) return actor
    }
    return undefined
  }

  async function authorizeMember(viewing: Viewing): Promise<ViewerDecision> {
    const { request, origin, isSecure } = viewing
    const pathname = viewing.url.split('?', 1)[0]
    if (pathname === CALLBACK_PATH) return signIn(viewing)
    if (pathname === START_PATH)
      return isNavigation(request) ? startSignIn({ ...viewing, url: '/' }) : refuse('cross-origin')
    if (readShareCookie(request.headers.cookie, 'viewer', isSecure).length > 0) {
      if (!isFromShare(request, origin)) return refuse('cross-origin')
      const actor = await findViewer(viewing)
      if (actor) return serve(viewing, actor)
    }
    return isNavigation(request) ? startSignIn(viewing) : refuse('sign-in')
  }

  function startSignIn({ share, request, isSecure, url }: Viewing): ViewerDecision {
    // The tabs of a browser can sign in at the same time.
    const cookies = readShareCookie(request.headers.cookie, 'state', isSecure)
    const cookie = cookies.find((value) => STATE_COOKIE.test(value)) ?? randomBytes(24).toString('hex')
    const signIn = { slug: share.slug, path: toLocalPath(url), state: toState(cookie) }
    return {
      type: 'redirect',
      status: 302,
      location: publicUrl + createSignInPath(signIn),
      setCookies: [formatShareCookie('state', cookie, { isSecure, maxAgeSeconds: STATE_SECONDS })],
    }
  }

  /** Exchanges the code of a sign-in for a viewer session. */
  async function signIn(viewing: Viewing): Promise<ViewerDecision> {
    const { share, request, isSecure, url } = viewing
    // A script, a frame or a preview of the link must not use the code up.
    if (!isNavigation(request)) return refuse('cross-origin')
    const query = new URLSearchParams(url.slice(CALLBACK_PATH.length))
    const [code, state, path] = [query.get('code'), query.get('state'), query.get('path') ?? '/']
    const location = isLocalPath(path) ? path : '/'
    const session =
      code !== null && state !== null && hasState(viewing, state)
        ? await viewers.exchange(share, code, state)
        : undefined
    if (session !== undefined) {
      const { token, maxAgeSeconds } = session
      return {
        type: 'redirect',
        status: 303,
        location,
        setCookies: [
          formatShareCookie('viewer', token, { isSecure, maxAgeSeconds }),
          formatExpiredCookie('state', isSecure),
        ],
      }
    }
    // The link was opened twice, or another tab has signed in.
    if (await findViewer(viewing)) return { type: 'redirect', status: 303, location, setCookies: [] }
    const setCookies = [formatExpiredCookie('state', isSecure)]
    if (code === null) return { ...refuse('sign-in'), setCookies }
    // The app can read the URL of a window that it has opened: the code may be valid in another browser.
    return { type: 'redirect', status: 303, location: CALLBACK_PATH, setCookies }
  }

  function authorizeByLink(viewing: Viewing): ViewerDecision {
    const { share, request, origin, isSecure, secrets, url } = viewing
    const secret = secrets.find((value) => isSecret(share, value))
    if (secret !== undefined) {
      if (!createsDocument(request)) return serve(viewing, null)
      const maxAgeSeconds =
        share.expiresAt === null ? null : Math.max(0, Math.floor((share.expiresAt - clock.now()) / 1000))
      return {
        type: 'redirect',
        // The browser sends a form again.
        status: request.method === 'GET' || request.method === 'HEAD' ? 303 : 307,
        location: toLocalPath(url),
        setCookies: [formatShareCookie('link', secret, { isSecure, maxAgeSeconds })],
      }
    }
    if (secrets.length > 0) return refuse('secret')
    const hasCookie = readShareCookie(request.headers.cookie, 'link', isSecure).some((value) =>
      isSecret(share, value),
    )
    if (!hasCookie) return refuse('secret')
    return isFromShare(request, origin) ? serve(viewing, null) : refuse('cross-origin')
  }

  return async (share, request) => {
    const origin = base.getOrigin(share.slug)
    const viewing = {
      share,
      request,
      origin,
      isSecure: origin.startsWith('https:'),
      ...takeSecret(request.url),
    }
    if (share.access === 'members') return authorizeMember(viewing)
    return share.access === 'anyone' ? authorizeByLink(viewing) : serve(viewing, null)
  }
}

/** Whether the browser has started the sign-in. */
const hasState = ({ request, isSecure }: Viewing, state: string): boolean =>
  readShareCookie(request.headers.cookie, 'state', isSecure).some((value) => isEqual(toState(value), state))

const isSecret = ({ secretHash }: ServedShare, secret: string): boolean =>
  secretHash !== null && isEqual(hashSecret(secret), secretHash)

/** Compares two hashes in a time that does not depend on their characters. */
function isEqual(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)]
  return first.length === second.length && timingSafeEqual(first, second)
}

const serve = ({ request, url }: Viewing, actor: Actor | null): ViewerDecision => ({
  type: 'serve',
  actor,
  url,
  cookie: removeOwnCookies(request.headers.cookie),
})

const refuse = (reason: 'sign-in' | 'secret' | 'cross-origin') => ({ type: 'refuse', reason }) as const
