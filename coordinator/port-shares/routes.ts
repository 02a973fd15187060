// The routes of shared ports (spec §4.5), and of the listening ports of a box.
import { z } from 'zod'
import { boxIdParamSchema } from '../../shared/api/boxes.ts'
import {
  createPortShareRequestSchema,
  createPortShareResponseSchema,
  LIST_PORT_SHARES_ERROR_CODES,
  listPortSharesQuerySchema,
  portShareListSchema,
  portSharesSchema,
  revokePortShareResponseSchema,
} from '../../shared/api/port-shares.ts'
import type { Clock } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { ADMISSION_ERRORS } from '../admission/refusal.ts'
import type { Heartbeats } from '../boxes/lifecycle/heartbeats.ts'
import { byKey } from '../http/access.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { joinFields, sendJson, stringifyPages } from '../http/json-pages.ts'
import { idParam, type Route, route } from '../http/route.ts'
import { findListening } from './listening.ts'
import type { PortShareService } from './service.ts'

const boxId = z.object({ id: boxIdParamSchema })

export type PortRoutesOptions = {
  boxes: Pick<BoxFinder, 'find'>
  shares: PortShareService
  heartbeats: Pick<Heartbeats, 'latest' | 'latestPorts'>
  clock: Clock
}

export const portRoutes = ({ boxes, shares, heartbeats, clock }: PortRoutesOptions): Route[] => [
  route({
    id: 'portShares.create',
    method: 'POST',
    path: '/boxes/:id/port-shares',
    atOwnerOf: 'id',
    access: byKey('boxes', 'write'),
    summary: 'Share a port of a box by a link',
    description: `Each link has an origin of its own. A port has at most one link: a link of another audience is revoked and replaced. A workspace has at most ${LIMITS.shareLinks} live links that need no membership. The refusals of a new link are checked in this order: what the deployment allows, the role, the policies, the restriction of the box, and the limit.`,
    request: { params: boxId, body: createPortShareRequestSchema },
    responses: { 201: createPortShareResponseSchema },
    otherStatuses: {
      200: 'The port already has a link of this audience, or access is absent and the port has a link. It is returned; only rewriteHost may be changed',
    },
    errors: [
      ...(['port_share_disabled', 'share_links_disabled', 'not_allowed', 'policy_denied'] as const),
      ...(['share_links_blocked', 'box_restricted', 'share_link_limit'] as const),
      ...ADMISSION_ERRORS.share,
    ],
    errorDescriptions: {
      not_allowed:
        'Contractors may create only links for members; only owners may create public links, and no key without a user.',
      policy_denied: 'The policy anyoneLinksOwnerOnly allows only owners to create links for anyone.',
      box_restricted: 'A restricted box has only links for members.',
    },
    async handler({ actor, params, body, reply }) {
      const { isNew, response } = await shares.create(actor, params.id, body)
      return isNew ? response : reply.code(200).send(response)
    },
  }),
  route({
    id: 'portShares.listForBox',
    method: 'GET',
    path: '/boxes/:id/port-shares',
    atOwnerOf: 'id',
    access: byKey('boxes', 'read'),
    summary: 'Get the links to the ports of a box, and its listening ports',
    request: { params: boxId },
    responses: { 200: portSharesSchema },
    async handler({ actor, params: { id }, reply }) {
      const box = await boxes.find(actor, id)
      const recent = { heartbeat: heartbeats.latest(id), ports: heartbeats.latestPorts(id) }
      const listening = findListening(box, recent, clock.now())
      const list = await stringifyPages(shares.listOfBox(id))
      return sendJson(
        reply,
        joinFields({ shares: list }, { ...(await shares.describe(actor, box)), listening }),
      )
    },
  }),
  route({
    id: 'portShares.list',
    method: 'GET',
    path: '/port-shares',
    access: byKey('boxes', 'read'),
    summary: 'List the links to the ports of all boxes',
    description: 'Returns the links to boxes that the API key may access.',
    request: { query: listPortSharesQuerySchema },
    fieldErrorCodes: LIST_PORT_SHARES_ERROR_CODES,
    responses: { 200: portShareListSchema },
    async handler({ actor, query, reply }) {
      if (query.limit !== undefined || query.before !== undefined)
        return { ...(await shares.describe(actor)), ...(await shares.listPage(actor, query)) }
      const list = await stringifyPages(shares.listAll(actor))
      return sendJson(reply, joinFields({ shares: list }, await shares.describe(actor)))
    },
  }),
  route({
    id: 'portShares.revoke',
    method: 'DELETE',
    path: '/port-shares/:id',
    access: byKey('boxes', 'write'),
    summary: 'Revoke a link',
    description:
      'Requests and WebSockets that are open through the link end at once. No effect on a link that has ended; 30 days later it is not found.',
    request: { params: z.object({ id: idParam }) },
    responses: { 200: revokePortShareResponseSchema },
    async handler({ actor, params }) {
      await shares.revoke(actor, params.id)
      return { revoked: true }
    },
  }),
]
