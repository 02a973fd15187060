// Terminal tickets (spec §5.10).
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { ticketRoutes } from './routes.ts'
import { createTicketService, type TicketService } from './service.ts'

export function ticketsModule({ db, clock, boxFinder }: ModuleBase & { boxFinder: BoxFinder }) {
  const tickets: TicketService = createTicketService({ db, clock, boxes: boxFinder })
  return {
    services: { tickets },
    routes: withTag('Boxes', ticketRoutes({ tickets })),
    schedules: { pruners: { tickets: tickets.prune } },
    workspaceTables: [{ table: 'tickets', key: 'id', isCredential: true }],
  } satisfies Module
}
