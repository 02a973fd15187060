// GET /share/sign-in on the main origin: gives the user of the dashboard session a code for a share for members.
import { ApiError } from '../../../../shared/errors.ts'
import type { ShareViewers } from '../../../boxes/port-shares/types.ts'
import { createCallbackUrl } from '../../../boxes/port-shares/viewers/callback-url.ts'
import type { Actor } from '../../../http/actor.ts'
import type { PublicRoute } from '../../../http/public-routes.ts'
import {
  findMembersShare,
  findSessionUser,
  MAIN_ORIGIN_HEADERS,
  type MainOriginOptions,
  redirectToSignIn,
  sendNoSuchLink,
} from './main-origin.ts'
import { isNavigation } from './request-source.ts'
import { createSignInPath, parseSignInUrl, type ShareSignIn, SIGN_IN_PATH } from './sign-in-url.ts'

export type ShareSignInOptions = MainOriginOptions & {
  shareViewers: Pick<ShareViewers, 'createCode'>
}

export function createShareSignInRoute(options: ShareSignInOptions): PublicRoute {
  const { portShares, shareViewers } = options

  /** undefined: the user does not see a link for members with this slug. */
  async function createUrl(actor: Actor, { slug, path, state }: ShareSignIn): Promise<string | undefined> {
    const found = await findMembersShare(actor, slug, options)
    if (found === undefined) return undefined
    const { code } = await shareViewers.createCode(actor, found.share, state)
    return createCallbackUrl(portShares.base.getOrigin(slug), { code, state, path })
  }

  return {
    path: SIGN_IN_PATH,
    async handler(request, reply) {
      reply.headers(MAIN_ORIGIN_HEADERS)
      const { method, headers, url } = request
      if (!isNavigation({ method, headers, isUpgrade: false }))
        throw new ApiError(
          'not_allowed',
          'Only a browser can open this page. Open the link of the port in one.',
        )
      const signIn = parseSignInUrl(url)
      if (signIn === undefined) return sendNoSuchLink(request, reply)
      const actor = await findSessionUser(request, options)
      if (actor === undefined) return redirectToSignIn(reply, createSignInPath(signIn), options)
      const location = await createUrl(actor, signIn)
      return location === undefined ? sendNoSuchLink(request, reply) : reply.redirect(location, 303)
    },
  }
}
