// The route that creates download links. The edge serves them.
import { z } from 'zod'
import { boxIdParamSchema } from '../../shared/api/boxes.ts'
import { createDownloadLinkRequestSchema, downloadLinkSchema } from '../../shared/api/download-links.ts'
import { LIMITS } from '../../shared/limits.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import type { DownloadLinks } from './service.ts'

export const downloadLinkRoutes = ({
  downloadLinks,
}: {
  downloadLinks: Pick<DownloadLinks, 'create'>
}): Route[] => [
  route({
    id: 'downloads.createLink',
    method: 'POST',
    path: '/boxes/:id/download-links',
    access: byKey('boxes', 'read'),
    summary: 'Create a link that downloads a file or directory once',
    description: `For a browser, which downloads to disk only from a link. The link is valid once, for ${LIMITS.downloadLinkSeconds} seconds, and with the session or key that has created it. The box and the path are checked by the download.`,
    request: { params: z.object({ id: boxIdParamSchema }), body: createDownloadLinkRequestSchema },
    responses: { 201: downloadLinkSchema },
    errors: ['rate_limited'],
    handler: ({ actor, params, body }) => downloadLinks.create(actor, params.id, body.path),
  }),
]
