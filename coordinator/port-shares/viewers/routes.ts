// The route that creates a URL which opens a link for members without a sign-in.
import { z } from 'zod'
import { openPortShareResponseSchema } from '../../../shared/api/port-shares.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { byKey } from '../../http/access.ts'
import { idParam, type Route, route } from '../../http/route.ts'
import type { PortShares, ShareViewers } from '../types.ts'
import { createOpenUrl } from './open-url.ts'

export type ShareViewerRoutesOptions = {
  portShares: Pick<PortShares, 'get'>
  shareViewers: Pick<ShareViewers, 'createOpenCode'>
  /** The URL of the coordinator, without a slash at its end. */
  publicUrl: string
}

export const shareViewerRoutes = ({
  portShares,
  shareViewers,
  publicUrl,
}: ShareViewerRoutesOptions): Route[] => [
  route({
    id: 'portShares.open',
    method: 'POST',
    path: '/port-shares/:id/open',
    access: byKey('boxes', 'read'),
    summary: 'Create a URL that opens a link for members without a sign-in',
    description:
      'The URL is one of the coordinator. It starts a viewer session in the browser that opens it first, for this link only. The session acts as the caller and ends with the credential of the request, and after seven days. A link for members needs a sign-in otherwise. The url of other links opens by itself.',
    request: { params: z.object({ id: idParam }) },
    responses: { 200: openPortShareResponseSchema },
    errors: [
      'port_share_disabled',
      'share_links_disabled',
      'share_links_blocked',
      'box_restricted',
      'rate_limited',
    ],
    errorDescriptions: { bad_request: 'The link is not for members: its url opens by itself.' },
    async handler({ actor, params }) {
      const { share } = await portShares.get(actor, params.id)
      if (share.access !== 'members')
        throw new ApiError(
          'bad_request',
          'Only links for members need a URL from this route. Open the url of the link itself.',
        )
      const { code, expiresAt } = await shareViewers.createOpenCode(actor, share)
      const url = createOpenUrl(publicUrl, { slug: share.slug, code })
      return { url, expiresAt: toTimestamp(expiresAt) }
    },
  }),
]
