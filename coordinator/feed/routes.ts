// The route GET /feed: the boxes, snapshots and operations of a workspace with their changes, over a WebSocket.
import { feedMessageSchema, feedQuerySchema } from '../../shared/api/feed.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { acceptWebSocket } from '../http/websocket.ts'
import type { Feeds } from './feeds.ts'

export const feedRoutes = ({ feeds }: { feeds: Pick<Feeds, 'serve'> }): Route[] => [
  route({
    id: 'feed.open',
    method: 'GET',
    path: '/feed',
    access: byKey('boxes', 'read'),
    summary: 'Follow boxes, snapshots and operations over a WebSocket',
    description:
      'The server sends text messages, each a JSON object `FeedMessage`. A feed begins with all items, in messages `items` of at most 200, and then `ready`: the boxes of GET /boxes, the snapshots of GET /snapshots, and the operations that have not finished. After that, each change arrives as a message `changed`, usually within 100 ms. `items` has the items that are new or may have changed: a box is sent also when only its job or other parts of GET /boxes/{id} have changed, except vitals. `removed` has the ids of items that are not in the list any more. A finished operation is sent once. Changes may arrive before `ready`, too. `alive` is sent every 15 seconds. The server closes the feed with 1012 when the coordinator is stopping or the credential may see other items, and with 1013 when the client reads too slowly, or when there are too many feeds and this workspace has the most: then, and after any other disconnect, connect again. A feed ends with 3000 or 3003 when the credential may no longer follow it.',
    request: { query: feedQuerySchema },
    isWebSocket: true,
    responses: { 101: feedMessageSchema },
    errors: ['invalid_request', 'rate_limited', 'control_plane_unavailable'],
    errorDescriptions: {
      rate_limited: 'The credential, its user, the workspace or the coordinator has too many open feeds.',
    },
    async handler({ actor, query, request, reply }) {
      const { openRequest } = request
      if (openRequest === null) throw new Error('the request reached its route without authentication')
      await feeds.serve({
        actor,
        live: query.live ?? false,
        openRequest,
        accept: () => acceptWebSocket(request, reply),
      })
      return reply
    },
  }),
]
