// GET /share/sign-in on the main origin: gives the user of the dashboard session a code for a share for members.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../../shared/errors.ts'
import type { PortShares, ShareViewers } from '../../../boxes/port-shares/types.ts'
import { createCallbackUrl } from '../../../boxes/port-shares/viewers/callback-url.ts'
import type { Actor } from '../../../http/actor.ts'
import { type CredentialFinders, readSessionCookie } from '../../../http/auth.ts'
import { hashSecret } from '../../../http/hash-secret.ts'
import type { PublicRoute } from '../../../http/public-routes.ts'
import { canSee } from '../../../http/visibility.ts'
import { sendPage } from '../pages/page.ts'
import { NO_SUCH_LINK } from '../pages/pages.ts'
import { isNavigation } from './request-source.ts'
import { createSignInPath, parseSignInUrl, type ShareSignIn, SIGN_IN_PATH } from './sign-in-url.ts'

export type ShareSignInOptions = {
  finders: Pick<CredentialFinders, 'findSession'>
  portShares: Pick<PortShares, 'base' | 'find'>
  shareViewers: Pick<ShareViewers, 'createCode'>
  /** The URL of the coordinator, without a slash at its end. */
  publicUrl: string
}

/** Each response depends on the session. The page is never in a frame: another page could not see which links exist. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

export function createShareSignInRoute(options: ShareSignInOptions): PublicRoute {
  const { finders, portShares, shareViewers, publicUrl } = options
  /** The path that a proxy adds. */
  const addedPath = new URL(publicUrl).pathname.replace(/\/$/, '')

  async function findUser({ headers }: FastifyRequest): Promise<Actor | undefined> {
    const token = readSessionCookie(headers)
    const found = token ? await finders.findSession(hashSecret(token)) : undefined
    return found !== undefined && 'actor' in found ? found.actor : undefined
  }

  /** undefined: the user does not see a link for members with this slug. */
  async function createUrl(actor: Actor, { slug, path, state }: ShareSignIn): Promise<string | undefined> {
    const found = await portShares.find(slug)
    if (found?.share.access !== 'members') return undefined
    const { workspace_id: workspaceId, id: boxId, owner_user_id: ownerUserId } = found.box
    if (!canSee(actor, { workspaceId, boxId, ownerUserId })) return undefined
    const { code } = await shareViewers.createCode(actor, found.share, state)
    return createCallbackUrl(portShares.base.getOrigin(slug), { code, state, path })
  }

  return {
    path: SIGN_IN_PATH,
    async handler(request, reply) {
      reply.headers(HEADERS)
      const { method, headers, url } = request
      if (!isNavigation({ method, headers, isUpgrade: false }))
        throw new ApiError(
          'not_allowed',
          'Only a browser can open this page. Open the link of the port in one.',
        )
      const signIn = parseSignInUrl(url)
      if (signIn === undefined) return sendNoSuchLink(request, reply)
      const actor = await findUser(request)
      if (actor === undefined) {
        const query = new URLSearchParams({ next: addedPath + createSignInPath(signIn) })
        return reply.redirect(`${addedPath}/sign-in?${query}`, 302)
      }
      const location = await createUrl(actor, signIn)
      return location === undefined ? sendNoSuchLink(request, reply) : reply.redirect(location, 303)
    },
  }
}

/** The same for a link that does not exist and one that the user does not see. */
function sendNoSuchLink({ raw }: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.hijack()
  // What the pages of the main origin have stored stays.
  sendPage(raw, reply.raw, { ...NO_SUCH_LINK, clearsSite: false })
  return reply
}
