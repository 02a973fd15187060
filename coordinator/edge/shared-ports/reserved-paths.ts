// The paths of a share's origin that Boxwood serves to viewers who are signed in.
import type { ShareBase } from '../../boxes/port-shares/types.ts'
import { assertAccess, byKey } from '../../http/access.ts'
import type { Actor } from '../../http/actor.ts'
import { assertSameOrigin } from '../../http/cross-origin.ts'
import type { Exchange, Found, Served } from './exchange.ts'
import { sendPage, sendRedirect } from './pages/page.ts'
import { INVALID_REQUEST, NO_SUCH_PAGE, WAKE_PATH } from './pages/pages.ts'

export type ReservedPathsOptions = {
  base: Pick<ShareBase, 'getOrigin'>
  boxes: { wake(actor: Actor, boxId: string): Promise<unknown> }
}

/** POST WAKE_PATH wakes the box for a member, and redirects to the path in the query. */
export async function serveReservedPath(
  { base, boxes }: ReservedPathsOptions,
  { request, response, viewer }: Exchange,
  { share, box }: Found,
  { actor, url }: Served,
): Promise<void> {
  const origin = base.getOrigin(share.slug)
  const { pathname, searchParams } = new URL(origin + url)
  if (pathname !== WAKE_PATH || actor === null) return sendPage(request, response, NO_SUCH_PAGE)
  if (viewer.method !== 'POST')
    return sendPage(request, response.setHeader('allow', 'POST'), {
      ...INVALID_REQUEST,
      status: 405,
      code: 'method_not_allowed',
    })
  assertSameOrigin(request.headers)
  assertAccess(actor, byKey('boxes', 'run'), 'control')
  await boxes.wake(actor, box.id)
  sendRedirect(request, response, { status: 303, location: toLocation(searchParams.get('path'), origin) })
}

/** Returns a URL of the origin. */
function toLocation(path: string | null, origin: string): string {
  const url = URL.parse(path ?? '/', origin)
  return url?.origin === origin ? url.href : `${origin}/`
}
