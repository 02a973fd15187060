// GET /operations/{id} (spec §4.7).
import { z } from 'zod'
import { operationAnswer } from '../../shared/api/operations.ts'
import { type Route, route } from '../http/route.ts'
import type { OperationService } from './service.ts'

export const operationRoutes = ({ operations }: { operations: OperationService }): Route[] => [
  route({
    method: 'GET',
    path: '/operations/:id',
    summary: 'How far a delete has come; readable for 30 days after its end',
    request: { params: z.object({ id: z.string() }) },
    answers: { 200: operationAnswer },
    handle: async ({ actor, params }) => ({ operation: await operations.get(actor, params.id) }),
  }),
]
