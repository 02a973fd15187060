// GET /downloads/{token}: downloads the file of a download link. A route of the control plane, because the edge accepts no
// dashboard session.
import { z } from 'zod'
import type { DownloadLinks } from '../download-links/service.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { download } from './download.ts'
import { encodeQuery } from './encode-query.ts'

export const downloadLinkRoutes = (
  context: EdgeContext,
  downloadLinks: Pick<DownloadLinks, 'use' | 'peek'>,
): Route[] => [
  route({
    id: 'downloads.get',
    method: 'GET',
    path: '/downloads/:token',
    access: byKey('boxes', 'read'),
    summary: 'Download the file or directory of a download link',
    description:
      'Works once, with the session or key that has created the link; HEAD does not use the link. Responds as GET /download of the box, with the same limits. Browsers store the response and do not show it.',
    request: { params: z.object({ token: z.string() }) },
    responses: { 200: null },
    contentTypes: ['application/octet-stream', 'application/x-tar'],
    otherStatuses: { 206: 'The requested range', 304: 'Not modified' },
    errors: [
      ...ACQUIRE_ERRORS,
      'invalid_path',
      'permission_denied',
      'payload_too_large',
      'range_not_satisfiable',
    ],
    errorDescriptions: {
      not_found:
        'The link was used, has expired, or belongs to another credential. Or the box or the file does not exist.',
    },
    async handler(input) {
      const { actor, params, request } = input
      const find = request.method === 'HEAD' ? downloadLinks.peek : downloadLinks.use
      const { boxId, path } = await find(actor, params.token)
      const acquired = await acquireBox(context, { ...input, params: { box: boxId } })
      return download(context.transfers, acquired, `/download?${encodeQuery({ path })}`, input)
    },
  }),
]
