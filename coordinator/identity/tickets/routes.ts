// The route that creates terminal tickets (spec §5.10).
import { z } from 'zod'
import { boxIdParamSchema } from '../../../shared/api/boxes.ts'
import { createTicketRequestSchema, createTicketResponseSchema } from '../../../shared/api/tickets.ts'
import { bySession } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { TicketService } from './service.ts'

export const ticketRoutes = ({ tickets }: { tickets: TicketService }): Route[] => [
  route({
    id: 'tickets.create',
    method: 'POST',
    path: '/boxes/:id/tickets',
    access: bySession(),
    summary: 'Create a ticket for one box',
    description:
      'A ticket is a short-lived credential for a page that opens a terminal. It acts as the user of the session, on this box only, until it expires, the session ends or the user is removed. It is accepted as `Authorization: Bearer dct_…` by GET /boxes, GET /boxes/{id}, POST /boxes/{id}/wake and POST /audit, and of the box itself by the exec, file and transfer routes and GET /terminal. A browser, which cannot set headers on a WebSocket, connects with the two subprotocols `boxwood` and `boxwood.ticket.dct_…`; the server selects `boxwood`.',
    request: { params: z.object({ id: boxIdParamSchema }), body: createTicketRequestSchema },
    responses: { 201: createTicketResponseSchema },
    errors: ['workspace_closing'],
    handler: ({ actor, params, body }) => tickets.create(actor, params.id, body),
  }),
]
