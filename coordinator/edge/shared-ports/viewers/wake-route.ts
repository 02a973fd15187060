// GET and POST /share/wake on the main origin: the page with the button that wakes the box of a share for members.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../../shared/errors.ts'
import { assertAccess, byKey } from '../../../http/access.ts'
import type { Actor } from '../../../http/actor.ts'
import { assertSameOrigin } from '../../../http/cross-origin.ts'
import type { PublicRoute } from '../../../http/public-routes.ts'
import { createErrorPage, createWakePage } from '../pages/pages.ts'
import {
  findMembersShare,
  findSessionUser,
  getAddedPath,
  MAIN_ORIGIN_HEADERS,
  type MainOriginOptions,
  redirectToSignIn,
  sendMainPage,
  sendNoSuchLink,
} from './main-origin.ts'
import { createWakePath, parseWakeUrl, type ShareWake, WAKE_PATH } from './wake-url.ts'

export type ShareWakeOptions = MainOriginOptions & {
  boxes: { wake(actor: Actor, boxId: string): Promise<unknown> }
}

export function createShareWakeRoute(options: ShareWakeOptions): PublicRoute {
  const { portShares, boxes, publicUrl } = options
  const addedPath = getAddedPath(publicUrl)

  async function serve(request: FastifyRequest, reply: FastifyReply, wake: ShareWake): Promise<FastifyReply> {
    const isPost = request.method === 'POST'
    if (isPost) assertSameOrigin(request.headers)
    const actor = await findSessionUser(request, options)
    if (actor === undefined) return redirectToSignIn(reply, createWakePath(wake), options)
    const found = await findMembersShare(actor, wake.slug, options)
    if (found === undefined) return sendNoSuchLink(request, reply)
    const { box } = found
    const origin = portShares.base.getOrigin(wake.slug)
    if (isPost) {
      assertAccess(actor, byKey('boxes', 'run'), 'control')
      await boxes.wake(actor, box.id)
    } else if (box.desired_state !== 'running') {
      const path = addedPath + createWakePath(wake)
      return sendMainPage(request, reply, createWakePage(box, { path, origin }))
    }
    return reply.redirect(origin + wake.path, 303)
  }

  return {
    path: WAKE_PATH,
    acceptsPost: true,
    async handler(request, reply) {
      reply.headers(MAIN_ORIGIN_HEADERS)
      const wake = parseWakeUrl(request.url)
      if (wake === undefined) return sendNoSuchLink(request, reply)
      try {
        return await serve(request, reply, wake)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return sendMainPage(request, reply, createErrorPage(error))
      }
    },
  }
}
