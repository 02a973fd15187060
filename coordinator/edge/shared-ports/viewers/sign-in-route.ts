// GET /share/sign-in on the main origin: gives the user of the dashboard session, or the browser that opens a share with a code
// of its own, a code for a share for members.

import type { Actor } from '../../../http/actor.ts'
import type { PublicRoute } from '../../../http/public-routes.ts'
import type { ShareViewers } from '../../../port-shares/types.ts'
import { createCallbackUrl } from './callback-url.ts'
import {
  assertNavigation,
  findMembersShare,
  findSessionUser,
  MAIN_ORIGIN_HEADERS,
  type MainOriginOptions,
  redirectToSignIn,
  sendNoSuchLink,
} from './main-origin.ts'
import { formatExpiredOpenCode, readOpenCode } from './open-route.ts'
import { createSignInPath, parseSignInUrl, type ShareSignIn, SIGN_IN_PATH } from './sign-in-url.ts'

export type ShareSignInOptions = MainOriginOptions & {
  shareViewers: Pick<ShareViewers, 'createCode' | 'redeemOpenCode'>
}

export function createShareSignInRoute(options: ShareSignInOptions): PublicRoute {
  const { portShares, shareViewers, publicUrl } = options

  /** undefined: the code is not valid any more. */
  async function redeem(openCode: string, { slug, path, state }: ShareSignIn): Promise<string | undefined> {
    const found = await portShares.find(slug)
    const code = found && (await shareViewers.redeemOpenCode(found.share, openCode, state))
    return code && createCallbackUrl(portShares.base.getOrigin(slug), { code, state, path })
  }

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
      assertNavigation(request)
      const signIn = parseSignInUrl(request.url)
      if (signIn === undefined) return sendNoSuchLink(request, reply)
      const openCode = readOpenCode(request.headers, signIn.slug, publicUrl)
      if (openCode !== undefined) {
        reply.header('set-cookie', formatExpiredOpenCode(publicUrl))
        const location = await redeem(openCode, signIn)
        if (location !== undefined) return reply.redirect(location, 303)
      }
      const actor = await findSessionUser(request, options)
      if (actor === undefined) return redirectToSignIn(reply, createSignInPath(signIn), options)
      const location = await createUrl(actor, signIn)
      return location === undefined ? sendNoSuchLink(request, reply) : reply.redirect(location, 303)
    },
  }
}
